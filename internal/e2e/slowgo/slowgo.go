// Package slowgo makes a Go toolchain with a known slowdown, for tests and benchmarks of comparisons.
package slowgo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Slowdown is the relative change of the go command's CPU time.
const Slowdown = 0.20

// burner replaces a go command: it runs the real one, go.real, then burns a fifth of
// the CPU time that this took.
const burner = `package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

func cpu(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	real := exec.Command(filepath.Join(filepath.Dir(self), "go.real"), os.Args[1:]...)
	real.Stdin, real.Stdout, real.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = real.Run()
	for until := cpu(syscall.RUSAGE_SELF) + cpu(syscall.RUSAGE_CHILDREN)/5; cpu(syscall.RUSAGE_SELF) < until; {
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		panic(err)
	}
}
`

// Make makes, below dir, a copy of the toolchain in goroot with the slower go command, and returns its directory. The copy
// links to the real one.
func Make(ctx context.Context, goroot, dir string) (string, error) {
	slow := filepath.Join(dir, "goroot")
	entries, err := os.ReadDir(goroot)
	if err != nil {
		return "", err
	}
	errs := []error{os.MkdirAll(filepath.Join(slow, "bin"), 0o755)}
	for _, e := range entries {
		if e.Name() != "bin" {
			errs = append(errs, os.Symlink(filepath.Join(goroot, e.Name()), filepath.Join(slow, e.Name())))
		}
	}
	source := filepath.Join(dir, "main.go")
	errs = append(errs, os.Symlink(filepath.Join(goroot, "bin", "go"), filepath.Join(slow, "bin", "go.real")), os.WriteFile(source, []byte(burner), 0o600))
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("making a slow toolchain: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(slow, "bin", "go"), source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a slow go command: %w: %s", err, out)
	}
	return slow, nil
}
