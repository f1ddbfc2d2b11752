// Command testreport reads the output of 'go test -json', prints what a person
// needs of it, and holds the skipped tests against a committed list: a test that
// is skipped without standing there, or stands there without being skipped, is a
// failure, so that nothing stops being tested unnoticed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	skips := flag.String("skips", "", "file that lists the tests which may be skipped: package test, one a line, # begins a comment")
	flag.Parse()
	ok, err := report(os.Stdin, os.Stdout, *skips)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func report(in io.Reader, out io.Writer, skipFile string) (ok bool, err error) {
	var passed, failed int
	broken := false // a test, or a package that did not build or died
	var skipped []string
	output := make(map[string][]string) // of each test and package, until it is known to be good
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // the go command's own words: a package that does not build
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Fprintf(out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
			}
			delete(output, key)
		case "skip":
			if e.Test != "" {
				skipped = append(skipped, strings.TrimPrefix(key, "github.com/benchloom/benchloom/"))
			}
			delete(output, key)
		case "fail", "build-fail":
			if e.Test != "" {
				failed++
			}
			fmt.Fprintf(out, "FAIL  %s\n%s", key, strings.Join(output[key], ""))
			broken = true
			delete(output, key)
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("reading the test output: %w", err)
	}
	// A package that died in the middle of a test has said why in the output
	// of a test that never ended.
	for key, text := range output {
		if strings.Contains(strings.Join(text, ""), "panic:") {
			fmt.Fprintf(out, "died  %s\n%s", key, strings.Join(text, ""))
		}
	}
	expected, err := readSkips(skipFile)
	if err != nil {
		return false, err
	}
	ok = !broken && passed > 0
	slices.Sort(skipped)
	for _, s := range skipped {
		if !slices.Contains(expected, s) {
			fmt.Fprintf(out, "SKIPPED without standing in %s: %s\n", skipFile, s)
			ok = false
		}
	}
	for _, s := range expected {
		if !slices.Contains(skipped, s) {
			fmt.Fprintf(out, "STANDS in %s but was not skipped: %s\n", skipFile, s)
			ok = false
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, len(skipped))
	return ok, nil
}

func readSkips(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the list of skips: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out, nil
}
