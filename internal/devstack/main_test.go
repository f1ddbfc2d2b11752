//go:build linux || darwin

package devstack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/devstack"
)

// asChild makes the test binary behave as a process to supervise: its value
// names the behaviour, see children.
const asChild = "DEVSTACK_TEST_CHILD"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(asChild); behaviour != "" {
		os.Exit(children[behaviour](os.Args[1:]))
	}
	// The race detector makes a child wait a second at its end.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// children are the behaviours of the test binary as a child: each takes its
// arguments and returns the exit status.
var children = map[string]func(args []string) int{
	// Creates the file that tells it is up, with its number in it, and stops on
	// SIGTERM.
	"serve": func(args []string) int {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		writePID(args[0])
		<-stop
		fmt.Println("bye")
		return 0
	},
	// Like serve, but does not care about SIGTERM; SIGQUIT ends it.
	"stubborn": func(args []string) int {
		signal.Ignore(syscall.SIGTERM)
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGQUIT)
		writePID(args[0])
		<-stop
		fmt.Println("told to quit")
		return 0
	},
	// Prints numbered lines and fails.
	"fail": func([]string) int {
		for i := range 30 {
			fmt.Println("line", i+1)
		}
		return 7
	},
	// Fails unless the file exists, then creates it.
	"fail-first": func(args []string) int {
		if _, err := os.Stat(args[0]); err != nil {
			writePID(args[0])
			return 1
		}
		return 0
	},
	// Has a child of its own, and ends without it when told to.
	"parent": func(args []string) int {
		grandchild := exec.Command(os.Args[0], args[0])
		grandchild.Env = append(os.Environ(), asChild+"=serve")
		if grandchild.Start() != nil {
			return 1
		}
		waitForFile(args[0])
		writePID(args[1])
		time.Sleep(time.Hour)
		return 0
	},
	"print": func(args []string) int {
		fmt.Println(strings.Repeat("x", 50))
		return 0
	},
	// Says how the kernel runs it.
	"scheduling": func([]string) int {
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Cpus_allowed_list:") {
				fmt.Print(line)
			}
		}
		// Policy is field 41 of proc(5) stat, the 39th behind the name.
		stat, _ := os.ReadFile("/proc/self/stat")
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		slack, _ := os.ReadFile("/proc/self/timerslack_ns")
		fmt.Print("policy ", fields[38], ", slack ", string(slack))
		return 0
	},
	// Supervises a serving child, to be killed: directory of the state, and the
	// file of the child.
	"supervisor": func(args []string) int {
		err := func() error {
			state, err := devstack.OpenState(args[0])
			if err != nil {
				return err
			}
			processes := []devstack.Process{childProcess("a-server", "serve", args[1])}
			if len(args) > 2 && args[2] == "postgres" {
				postgres, err := devstack.NewPostgres(context.Background(), state, devstack.PostgresOptions{})
				if err != nil {
					return err
				}
				processes = append(processes, postgres.Process())
			}
			s, err := devstack.NewSupervisor(devstack.Config{State: state, Logger: slog.Default()}, processes...)
			if err != nil {
				return err
			}
			go func() {
				<-s.Ready()
				fmt.Println("all ready")
			}()
			return s.Run(context.Background())
		}()
		fmt.Fprintln(os.Stderr, err)
		return 1
	},
}

func writePID(file string) {
	temporary := file + ".tmp"
	if err := errors.Join(os.WriteFile(temporary, []byte(strconv.Itoa(os.Getpid())), 0o600), os.Rename(temporary, file)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func waitForFile(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// childProcess is the test binary with a behaviour; the first argument is the
// file that tells that it is up.
func childProcess(name, behaviour string, args ...string) devstack.Process {
	p := devstack.Process{
		Name: name,
		Argv: append([]string{os.Args[0]}, args...),
		Env:  append(os.Environ(), asChild+"="+behaviour),
	}
	if len(args) > 0 && (behaviour == "serve" || behaviour == "stubborn") {
		p.Prepare = func(context.Context) error {
			if err := os.Remove(args[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
		p.Ready = func(context.Context) error {
			_, err := os.Stat(args[0])
			return err
		}
	}
	return p
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	return pid
}

// ended tells whether the process has: a zombie counts, nobody reaps here.
func ended(pid int) bool {
	if runtime.GOOS == "linux" { // where ps may not be installed
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(state, "Z")
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(string(state), "Z")
}

func openState(t *testing.T, dir string) *devstack.State {
	t.Helper()
	state, err := devstack.OpenState(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = state.Close() })
	return state
}

// running is a supervisor that runs in the background of a test.
type running struct {
	*devstack.Supervisor
	cancel context.CancelFunc
	result chan error
}

func run(t *testing.T, config devstack.Config, processes ...devstack.Process) *running {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := devstack.NewSupervisor(config, processes...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Supervisor: s, cancel: cancel, result: make(chan error, 1)}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.result <- s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
	})
	return r
}

func (r *running) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.result:
		require.NoError(t, err)
		require.FailNow(t, "the supervisor ended before everything was ready")
	}
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	require.NoError(t, <-r.result)
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 5*time.Millisecond, what)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
