package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal COMMAND... runs a command whose standard output is a terminal. What the
// terminal got is the output of the line.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: terminal COMMAND...")
	}
	ours, theirs, err := openTerminal()
	ts.Check(err)
	defer ours.Close()
	command := exec.Command(lookPath(ts.Getenv("PATH"), args[0]), args[1:]...)
	for _, name := range []string{"BENCHLOOM_URL", "BENCHLOOM_TOKEN", "HOME", "PATH", "TZ", "GORACE"} {
		command.Env = append(command.Env, name+"="+ts.Getenv(name))
	}
	command.Stdout = theirs
	err = command.Start()
	ts.Check(errors.Join(err, theirs.Close()))
	text, err := io.ReadAll(ours)
	if err != nil && !errors.Is(err, syscall.EIO) { // how Linux says that the other side is closed
		ts.Fatalf("reading from the terminal: %v", err)
	}
	ts.Check(command.Wait())
	_, err = io.WriteString(ts.Stdout(), strings.ReplaceAll(string(text), "\r\n", "\n"))
	ts.Check(err)
}

func lookPath(path, program string) string {
	for _, dir := range filepath.SplitList(path) {
		if found := filepath.Join(dir, program); exists(found) {
			return found
		}
	}
	return program
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// openTerminal opens both sides of a pseudo-terminal, see pts(4).
func openTerminal() (ours, theirs *os.File, err error) {
	if ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}
