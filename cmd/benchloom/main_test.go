package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestMain(m *testing.M) {
	measure.InitMain()
	testscript.Main(checked{m}, map[string]func(){
		"benchloom": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// checked runs tests and fails if a goroutine is left.
type checked struct{ m *testing.M }

func (c checked) Run() int {
	code := c.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		return 1
	}
	return code
}

// quickExit keeps the race detector from delaying the exit of each command by a
// second.
func quickExit(env *testscript.Env) { env.Setenv("GORACE", "atexit_sleep_ms=0") }

// scriptCommands returns the commands of every script.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "keep": keep, "terminal": terminal,
	}
}

// exits CODE COMMAND... runs a command that must end with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if neg {
		ts.Fatalf("exits has no negation: name the exit code")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// keep NAME stores the output of the last command in a variable.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

func TestWithoutService(t *testing.T) {
	t.Parallel()
	runOffline(t, "testdata/offline")
}

// Measures the noise of this machine for half a minute.
func TestLongWithoutService(t *testing.T) {
	t.Parallel()
	runOffline(t, "testdata/long")
}

func runOffline(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir, Cmds: scriptCommands(), RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			quickExit(env)
			// Isolated from the environment, with an address where nothing listens.
			env.Setenv("BENCHLOOM_URL", "http://127.0.0.1:1")
			env.Setenv("HOME", env.WorkDir)
			examples, err := filepath.Abs("../../suites/example")
			env.Setenv("EXAMPLES", examples)
			return err
		},
	})
}
