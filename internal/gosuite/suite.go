package gosuite

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

//go:embed suite.yaml.tmpl
var files embed.FS

// Name returns a name for the module's suite: the last part of its path.
func (m Module) Name() string {
	name := path.Base(m.Path)
	if parent := path.Dir(m.Path); majorVersion(name) && parent != "." {
		name = path.Base(parent)
	}
	name = strings.Trim(replaceOthers(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789._-", '-'), "._-")
	if bench.CheckName("suite", name) != nil {
		return "benchmarks"
	}
	return name
}

// majorVersion reports whether a path's last part is one such as v2.
func majorVersion(part string) bool {
	digits, ok := strings.CutPrefix(part, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// replaceOthers replaces all but the allowed characters.
func replaceOthers(s, allowed string, by rune) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(allowed, r) {
			return r
		}
		return by
	}, s)
}

// Suite returns the text of a suite.yaml with one benchmark for each benchmark function.
func (m Module) Suite(name string) ([]byte, error) {
	if err := bench.CheckName("suite", name); err != nil {
		return nil, err
	}
	if strings.ContainsAny(m.Repository, "\n") || strings.ContainsAny(m.Below, "\n") {
		return nil, fmt.Errorf("%w: the path of the repository %q or of the module in it has a line break", bench.ErrInvalid, m.Repository)
	}
	type function struct{ Name, Package, Function string }
	var functions []function
	var dirs []string
	taken := make(map[string]bool)
	for _, p := range m.Packages {
		dirs = append(dirs, p.Dir)
		for _, f := range p.Benchmarks {
			functions = append(functions, function{Name: benchmarkName(p.Dir, f, taken), Package: p.Dir, Function: f})
		}
	}
	root := "${artifact}"
	if m.Below != "." {
		root += "/" + strings.ReplaceAll(m.Below, "$", "$$")
	}
	parse, err := template.New("suite.yaml.tmpl").Funcs(template.FuncMap{
		// A JSON string is a YAML string, and one in single quotes is a word of a shell.
		"text":    func(s string) (string, error) { return quoted(strings.ReplaceAll(s, "$", "$$")) },
		"literal": quoted,
		"word":    func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	}).ParseFS(files, "suite.yaml.tmpl")
	if err != nil {
		return nil, fmt.Errorf("reading the template of suites: %w", err)
	}
	var out bytes.Buffer
	err = parse.Execute(&out, map[string]any{"Name": name, "Module": m, "Root": root, "Packages": dirs, "Functions": functions})
	if err != nil {
		return nil, fmt.Errorf("writing the suite: %w", err)
	}
	if _, err := suite.Parse(out.Bytes()); err != nil {
		return nil, fmt.Errorf("the suite of %s would not be valid: %w", m.Path, err)
	}
	return out.Bytes(), nil
}

// quoted writes text as a JSON string on one line.
func quoted(s string) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(s)
	return strings.TrimSpace(out.String()), err
}

// caseCharacters may occur in the name of a benchmark.
const caseCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:+/-"

// benchmarkName names the benchmark of a function: Parse for BenchmarkParse of the
// module's root, lexer.Parse for that of its package lexer. It is not taken yet, also in
// another case.
func benchmarkName(dir, function string, taken map[string]bool) string {
	name := strings.TrimPrefix(function, "Benchmark")
	if dir != "." {
		name = dir + "." + name
	}
	name = replaceOthers(name, caseCharacters, '_')
	if bench.CheckParameter("benchmark", name) != nil { // such as that of Benchmark_parse
		name = function
		if dir != "." {
			name = path.Base(dir) + "." + name
		}
		name = replaceOthers(name, caseCharacters, '_')
	}
	if bench.CheckParameter("benchmark", name) != nil {
		name = "benchmark"
	}
	unique := name
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = fmt.Sprintf("%s-%d", name[:min(len(name), 120)], n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}

// Write writes the module's suite into a folder, which may exist without a suite.
func (m Module) Write(dir, name string) error {
	text, err := m.Suite(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a suite in %s: %w", dir, err)
	}
	file := filepath.Join(dir, suite.FileName)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; remove it to have it written anew, or name another folder with --out", file)
	}
	if err != nil {
		return fmt.Errorf("making a suite in %s: %w", dir, err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
