// Command testreport summarises the output of 'go test -json' while it is written: the
// files named as arguments, in parallel, or standard input. It prints failures and one
// line per package, and compares the skipped tests with a committed list. A test that
// is skipped but not listed, or listed but not skipped, is a failure, so that no test
// disappears unnoticed. At the end it names the slowest tests: they decide how long all take.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// The parts of the tests: the names of long tests begin with TestLong.
const (
	partQuick, partLong, partAll = "quick", "long", "all"
	longPrefix                   = "TestLong"
)

// event holds the fields of an event of 'go test -json' that are used here.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func main() {
	skips := flag.String("skips", "", "file with the tests that may be skipped: package and test, one per line, # begins a comment")
	failed := flag.String("failed", "", "file to write the failed tests to, package and test, one per line; none if something other than single tests failed")
	part := flag.String("part", partAll, "part of the tests in the output, and of the list to compare: quick, long or all")
	flag.Parse()
	s, ok, err := reportFiles(flag.Args(), *skips, *part)
	if err == nil && *failed != "" {
		err = s.writeFailed(*failed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func reportFiles(names []string, skips, part string) (s *summary, ok bool, err error) {
	if len(names) == 0 {
		return report([]io.Reader{os.Stdin}, os.Stdout, skips, part)
	}
	var inputs []io.Reader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, false, fmt.Errorf("opening the test output: %w", err)
		}
		defer f.Close()
		inputs = append(inputs, f)
	}
	return report(inputs, os.Stdout, skips, part)
}

// summary holds the results from all inputs so far.
type summary struct {
	out io.Writer

	mu             sync.Mutex
	passed, failed int
	broken         bool // a test failed, or a package did not build or died
	skipped        []string
	// failures are the failed tests without their parts: package and name. beyond reports
	// failures of which no test is the reason, such as a package that did not build.
	failures []string
	beyond   bool
	slow     []timed
}

// timed is a test that took long: at least slowFrom.
type timed struct {
	name    string
	seconds float64
}

const (
	slowFrom = 30 // seconds
	mostSlow = 12 // tests named
)

// report reads all inputs to their ends and reports whether all is well.
func report(inputs []io.Reader, out io.Writer, skipFile, part string) (s *summary, ok bool, err error) {
	expected, err := readSkips(skipFile, part)
	if err != nil {
		return nil, false, err
	}
	s = &summary{out: out}
	errs := make([]error, len(inputs))
	var all sync.WaitGroup
	for i, in := range inputs {
		all.Go(func() { errs[i] = s.read(in) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, false, err
		}
	}
	return s, s.conclude(expected, skipFile), nil
}

// writeFailed writes the failed tests to a file, each a line. It writes none if they are
// not all that failed, because repeating them would then prove nothing.
func (s *summary) writeFailed(file string) error {
	var text strings.Builder
	if !s.beyond {
		for _, name := range s.failures {
			fmt.Fprintln(&text, name)
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the failed tests: %w", err)
	}
	return nil
}

// stream is one input: the output of each test and package that may still fail, and the
// packages and tests that have not ended.
type stream struct {
	*summary
	output map[string][]string
	open   map[string]bool // packages
	begun  map[string]bool // tests: package and name
	any    bool            // a test has passed
}

func (s *summary) read(in io.Reader) error {
	st := stream{summary: s, output: make(map[string][]string), open: make(map[string]bool), begun: make(map[string]bool)}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.mu.Lock()
			st.line(line)
			s.mu.Unlock()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the test output: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.end()
	return nil
}

func (s *stream) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(s.out, line) // a message of the go command
		return
	}
	if e.Package == "" {
		e.Package = e.ImportPath // the build failed
	}
	key := strings.TrimSpace(e.Package + " " + e.Test)
	switch e.Action {
	case "start":
		s.open[e.Package] = true
	case "run":
		s.begun[key] = true
	case "output", "build-output":
		s.output[key] = append(s.output[key], e.Output)
	case "pass":
		if e.Test != "" {
			s.passed++
			s.any = true
		} else {
			fmt.Fprintf(s.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			s.skipped = append(s.skipped, strings.TrimPrefix(key, "github.com/benchloom/benchloom/"))
		}
	case "fail", "build-fail":
		s.fail(e, key)
		fmt.Fprintf(s.out, "FAIL  %s\n%s", key, strings.Join(s.output[key], ""))
		s.broken = true
		if e.Test == "" {
			s.unended(e.Package)
		}
	}
	switch e.Action {
	case "pass", "skip", "fail", "build-fail":
		if e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed >= slowFrom {
			s.slow = append(s.slow, timed{key, e.Elapsed})
		}
		delete(s.output, key)
		delete(s.begun, key)
		if e.Test == "" {
			delete(s.open, e.Package)
		}
	}
}

// fail notes that a test or a package failed.
func (s *stream) fail(e event, key string) {
	inPackage := func(name string) bool { return strings.HasPrefix(name, e.Package+" ") }
	if strings.Contains(strings.Join(s.output[key], ""), "DATA RACE") {
		s.beyond = true // the next run may not meet it
	}
	switch {
	case e.Test == "":
		// A package fails with its tests. Without one, or in the middle of one, it died.
		s.beyond = s.beyond || e.Action == "build-fail" || !slices.ContainsFunc(s.failures, inPackage) || slices.ContainsFunc(slices.Collect(maps.Keys(s.begun)), inPackage)
	case !strings.Contains(e.Test, "/"):
		s.failures = append(s.failures, key)
		fallthrough
	default:
		s.failed++
	}
}

// unended names the tests that were running when their package died, such as those that it waited for in vain.
func (s *stream) unended(name string) {
	for _, key := range slices.Sorted(maps.Keys(s.begun)) {
		if strings.HasPrefix(key, name+" ") {
			fmt.Fprintf(s.out, "FAIL  %s has not ended\n", key)
		}
	}
}

// end reports packages that died. When one dies in the middle of a test, the reason is
// in the output of a test that never ended.
func (s *stream) end() {
	for _, key := range slices.Sorted(maps.Keys(s.output)) {
		if text := strings.Join(s.output[key], ""); strings.Contains(text, "panic:") {
			fmt.Fprintf(s.out, "died  %s\n%s", key, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.open)) {
		fmt.Fprintf(s.out, "FAIL  %s has not ended\n", name)
		s.broken, s.beyond = true, true
	}
	if !s.any {
		fmt.Fprintln(s.out, "FAIL  no test passed in this run")
		s.broken, s.beyond = true, true
	}
}

func (s *summary) conclude(expected []string, skipFile string) (ok bool) {
	ok = !s.broken
	slices.Sort(s.skipped)
	for _, name := range s.skipped {
		if !slices.Contains(expected, name) {
			fmt.Fprintf(s.out, "SKIPPED but not listed in %s: %s\n", skipFile, name)
			ok, s.beyond = false, true
		}
	}
	for _, name := range expected {
		if !slices.Contains(s.skipped, name) {
			fmt.Fprintf(s.out, "LISTED in %s but not skipped: %s\n", skipFile, name)
			ok, s.beyond = false, true
		}
	}
	slices.SortFunc(s.slow, func(a, b timed) int { return cmp.Or(-cmp.Compare(a.seconds, b.seconds), cmp.Compare(a.name, b.name)) })
	for _, t := range s.slow[:min(len(s.slow), mostSlow)] {
		fmt.Fprintf(s.out, "slow  %s  %.1fs\n", t.name, t.seconds)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skipped))
	return ok
}

// readSkips reads the list's entries for a part of the tests.
func readSkips(file, part string) ([]string, error) {
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
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		_, test, _ := strings.Cut(line, " ")
		if part == partAll || strings.HasPrefix(test, longPrefix) == (part == partLong) {
			out = append(out, line)
		}
	}
	return out, nil
}
