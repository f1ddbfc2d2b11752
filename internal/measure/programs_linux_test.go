package measure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/measure"
)

// helperVariable makes the test binary act as one of the programs below instead of running tests.
const helperVariable = "MEASURE_TEST_HELPER"

func TestMain(m *testing.M) {
	measure.InitMain()
	if helper := os.Getenv(helperVariable); helper != "" {
		if err := runHelper(helper, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runHelper runs the named program.
func runHelper(name string, args []string) error {
	switch name {
	case "exit":
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		os.Exit(code)
	case "init": // what is given, directory
		return tellInit(args[0], args[1])
	case "avoid": // CPU, directory
		return avoid(args[0], args[1])
	case "lend": // CPU, directory
		return lend(args[0], args[1])
	case "burn": // CPU time in ms
		return burn(args[0])
	case "eat": // memory in MiB
		return eat(args[0])
	case "flood": // bytes to stdout, then a line to stderr
		return flood(args[0])
	case "fill": // file name, MiB: then waits
		return fill(args[0], args[1])
	case "print":
		return printFacts()
	case "sleep": // for ever
		sleep()
	case "behind": // starts a sleeper in the way args[0] says and exits
		return startSleeper(args[0], args[1])
	case "family": // starts sleepers in every way and sleeps
		for _, way := range []string{"child", "session", "orphan"} {
			if err := startSleeper(way, filepath.Join(args[0], way)); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(args[0], "main"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return err
		}
		sleep()
	case "sleeper": // writes its process ID, then sleeps
		if err := os.WriteFile(args[0]+".new", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return err
		}
		if err := os.Rename(args[0]+".new", args[0]); err != nil {
			return err
		}
		sleep()
	case "sibling": // starts a sleeper that is a child of the collector, and exits or sleeps
		cmd := exec.Command(os.Args[0], args[0])
		cmd.Env = append(os.Environ(), helperVariable+"=sleeper")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_PARENT}
		if err := cmd.Start(); err != nil {
			return err
		}
		for {
			if _, err := os.Stat(args[0]); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if len(args) > 1 {
			sleep()
		}
	case "nest": // directories in each other, then exits or sleeps
		if err := nest(args[0]); err != nil || len(args) == 1 {
			return err
		}
		sleep()
	case "dial": // an address
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", args[0])
		if err != nil {
			return err
		}
		return conn.Close()
	case "loopback": // connects to itself
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", listener.Addr().String())
		if err != nil {
			return err
		}
		return conn.Close()
	case "orphaner": // starts a sleeper in a session of its own and exits
		return startSleeper("session", args[0])
	default:
		return platformHelper(name, args)
	}
	return nil
}

// sleep ignores all signals that can be ignored and outlasts every test.
func sleep() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	time.Sleep(10 * time.Minute)
	os.Exit(4)
}

func burn(milliseconds string) error {
	n, err := strconv.Atoi(milliseconds)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	for x, spent := 1, time.Duration(0); spent < time.Duration(n)*time.Millisecond; spent = cpuTime() {
		for i := range 100_000 {
			x = x*31 + i
		}
		if x == 0 {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

func eat(mebibytes string) error {
	n, err := strconv.Atoi(mebibytes)
	if err != nil {
		return err
	}
	var blocks [][]byte
	for range n {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 512 {
			block[i] = byte(i)
		}
		blocks = append(blocks, block)
	}
	runtime.KeepAlive(blocks)
	return nil
}

func flood(bytes string) error {
	n, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	block := []byte(strings.Repeat("0123456789abcde\n", 4096))
	for n > 0 {
		written, err := os.Stdout.Write(block[:min(n, len(block))])
		if err != nil {
			return err
		}
		n -= written
	}
	_, err = fmt.Fprintln(os.Stderr, "done")
	return err
}

func fill(file, mebibytes string) error {
	n, err := strconv.Atoi(mebibytes)
	if err != nil {
		return err
	}
	for i := range n {
		// One file each, as the size of a single one is limited in another way.
		if err := os.WriteFile(fmt.Sprintf("%s.%d", file, i), make([]byte, 1<<20), 0o644); err != nil {
			return err
		}
	}
	sleep()
	return nil
}

// nest makes n directories, each in the one before, so that the innermost has no path.
func nest(n string) error {
	levels, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	for range levels {
		if err := errors.Join(os.Mkdir("d", 0o755), syscall.Chdir("d")); err != nil {
			return err
		}
	}
	return nil
}

// startSleeper starts a sleeper as an ordinary child, in its own session, or as an orphan in its own session, and returns
// once it runs.
func startSleeper(way, file string) error {
	helper := "sleeper"
	if way == "orphan" {
		helper = "orphaner"
	}
	cmd := exec.Command(os.Args[0], file)
	cmd.Env = append(os.Environ(), helperVariable+"="+helper)
	if way != "child" {
		cmd.SysProcAttr = newSession()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if way == "orphan" {
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// waitFor waits until a condition is true, at most until the test's own time limit.
func waitFor(ctx context.Context, t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for a condition: %v", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
