package gosuite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Module is a Go module with its benchmarks.
type Module struct {
	// Path is the module's import path.
	Path string
	// Repository is the absolute path of the git repository, and Below the module's
	// directory in it, slash-separated; "." for the repository's root.
	Repository, Below string
	// Toolchain is the Go release in use, such as go1.26.0; empty for a development version.
	Toolchain string
	// Packages are those with benchmarks, by directory.
	Packages []Package
}

// Package is a package with benchmarks.
type Package struct {
	// Dir is relative to the module's directory and slash-separated; "." for its root.
	Dir string
	// Benchmarks are the names of the functions, sorted.
	Benchmarks []string
}

// Find reads the Go module to which a directory belongs: with the go command, for the
// platform of this machine, including files that are not committed yet. environ is the
// environment of the go and git commands. Errors name what is missing and what to do.
func Find(ctx context.Context, dir string, environ []string) (Module, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Module{}, fmt.Errorf("finding the Go module: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Module{}, fmt.Errorf("%s is not a directory; name that of a Go module", dir)
	}
	run := runner{dir: dir, environ: environ}
	root, err := run.moduleRoot(ctx)
	if err != nil {
		return Module{}, err
	}
	run.dir = root
	var m Module
	if m.Repository, m.Below, err = run.repository(ctx); err != nil {
		return Module{}, err
	}
	out, err := run.command(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return Module{}, err
	}
	m.Toolchain = release.FindString(out)
	out, err = run.command(ctx, "go", "list", "-m", "-f", "{{.Path}}")
	if err != nil {
		return Module{}, err
	}
	m.Path, _, _ = strings.Cut(out, "\n") // of a workspace the module itself comes first
	if m.Packages, err = run.packages(ctx); err != nil {
		return Module{}, err
	}
	if len(m.Packages) == 0 {
		return Module{}, fmt.Errorf("the Go module %s in %s has no benchmarks: no test file has a function such as BenchmarkParse(b *testing.B)", m.Path, root)
	}
	return m, nil
}

// Benchmarks returns the number of benchmark functions.
func (m Module) Benchmarks() int {
	n := 0
	for _, p := range m.Packages {
		n += len(p.Benchmarks)
	}
	return n
}

// release matches the version of a Go release.
var release = regexp.MustCompile(`^go1\.[0-9]+(\.[0-9]+)?(rc[0-9]+)?$`)

// runner runs commands in a directory.
type runner struct {
	dir     string
	environ []string
}

// command runs a program and returns its trimmed standard output.
func (r runner) command(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = r.dir, append(slices.Clone(r.environ), "PWD="+r.dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not on PATH; install it", program)
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", &commandError{line: program + " " + strings.Join(args, " "), dir: r.dir, said: strings.TrimSpace(stderr.String()), err: err}
	}
	return strings.TrimSpace(stdout.String()), nil
}

// commandError is the error of a program that ran and failed.
type commandError struct {
	line, dir, said string
	err             error
}

func (e *commandError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s in %s: %v", e.line, e.dir, e.err)
	}
	return fmt.Sprintf("%s in %s: %s", e.line, e.dir, e.said)
}

func (e *commandError) Unwrap() error { return e.err }

// moduleRoot returns the directory of the go.mod file.
func (r runner) moduleRoot(ctx context.Context) (string, error) {
	file, err := r.command(ctx, "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("%s is not in a Go module: neither it nor a directory above has a go.mod; name the directory of a module, or make one with 'go mod init'", r.dir)
	}
	return filepath.EvalSymlinks(filepath.Dir(file))
}

// repository returns the repository of the directory and the directory's place in it.
func (r runner) repository(ctx context.Context) (root, below string, err error) {
	root, err = r.command(ctx, "git", "rev-parse", "--show-toplevel")
	if failed, ok := errors.AsType[*commandError](err); ok {
		return "", "", fmt.Errorf("%s is not in a git repository (%s); artifacts are built from committed revisions: run 'git init', 'git add .' and 'git commit' there", r.dir, firstLine(failed.said))
	}
	if err != nil {
		return "", "", err
	}
	if root, err = filepath.EvalSymlinks(filepath.FromSlash(root)); err != nil {
		return "", "", fmt.Errorf("finding the git repository: %w", err)
	}
	if _, err := r.command(ctx, "git", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return "", "", fmt.Errorf("the git repository %s has no commits; artifacts are built from them: run 'git add .' and 'git commit' there", root)
	}
	below, err = filepath.Rel(root, r.dir)
	return root, filepath.ToSlash(below), err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// packages lists the packages with benchmarks.
func (r runner) packages(ctx context.Context) ([]Package, error) {
	// With -e, packages that do not compile are listed, too.
	out, err := r.command(ctx, "go", "list", "-e", "-json=Dir,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var packages []Package
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var listed struct {
			Dir                       string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		dir, err := filepath.Rel(r.dir, listed.Dir)
		if err != nil {
			return nil, fmt.Errorf("finding the package in %s: %w", listed.Dir, err)
		}
		p := Package{Dir: filepath.ToSlash(dir)}
		for _, file := range slices.Concat(listed.TestGoFiles, listed.XTestGoFiles) {
			names, err := benchmarksIn(filepath.Join(listed.Dir, file))
			if err != nil {
				return nil, err
			}
			p.Benchmarks = append(p.Benchmarks, names...)
		}
		if len(p.Benchmarks) > 0 {
			slices.Sort(p.Benchmarks)
			p.Benchmarks = slices.Compact(p.Benchmarks)
			packages = append(packages, p)
		}
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Dir, b.Dir) })
	return packages, nil
}

// benchmarksIn returns the names of the benchmark functions in a test file.
func benchmarksIn(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading the benchmarks: %w", err)
	}
	var names []string
	for _, declared := range parsed.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && isBenchmark(f) {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

// isBenchmark applies the rules of the go command: func BenchmarkXxx(b *testing.B), where
// Xxx does not begin with a lower-case letter.
func isBenchmark(f *ast.FuncDecl) bool {
	rest, ok := strings.CutPrefix(f.Name.Name, "Benchmark")
	first, _ := utf8.DecodeRuneInString(rest)
	if !ok || f.Recv != nil || rest != "" && unicode.IsLower(first) {
		return false
	}
	kind := f.Type
	if kind.TypeParams != nil || kind.Results.NumFields() > 0 || kind.Params.NumFields() != 1 {
		return false
	}
	pointer, ok := kind.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch to := pointer.X.(type) {
	case *ast.SelectorExpr:
		return to.Sel.Name == "B"
	case *ast.Ident: // of import . "testing"
		return to.Name == "B"
	}
	return false
}
