package artifact

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// command is one run of a program to its end.
type command struct {
	path string
	args []string
	dir  string
	env  []string // whole environment; a later assignment wins
}

// secrets begin the names of variables that no program sees: they hold addresses and tokens of this service.
var secrets = []string{"BENCHLOOM_", "TEMPORAL_", "DATABASE_", "PG"}

// inherited returns the environment of this process without its secrets.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc(secrets, func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	})
}

// commandError reports a program that ran and failed.
type commandError struct {
	line   string // the command line
	output string // standard error
	err    error
}

func (e *commandError) Error() string {
	if e.output == "" {
		return fmt.Sprintf("%s: %v", e.line, e.err)
	}
	return fmt.Sprintf("%s: %v: %s", e.line, e.err, e.output)
}

// reason returns the program's message, or else how the program ended.
func (e *commandError) reason() string {
	if e.output != "" {
		return e.output
	}
	return e.Error()
}

func (e *commandError) Unwrap() error { return e.err }

// run returns the standard output, even if the command failed.
func (c command) run(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	// A child that inherited the pipes must not delay a cancelled command.
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		const longest = 2000 // bytes of output in an error; the end says what went wrong
		said := strings.TrimSpace(stderr.String())
		if len(said) > longest {
			said = "…" + strings.ToValidUTF8(said[len(said)-longest:], "")
		}
		return stdout.String(), &commandError{line: strings.Join(append([]string{c.path}, c.args...), " "), output: said, err: err}
	}
	return stdout.String(), nil
}

// lookPath returns the path of a program: given, or else name on PATH.
func lookPath(given, name, artifact, remedy string) (string, error) {
	if given == "" {
		given = name
	}
	path, err := exec.LookPath(given)
	if err == nil {
		path, err = filepath.Abs(path) // commands run in other directories
	}
	if err != nil {
		return "", &Error{Kind: ToolMissing, Artifact: artifact, Reason: "this needs the " + name + " command", Remedy: remedy, Err: err}
	}
	return path, nil
}

// oneLine joins the lines of a program's message.
func oneLine(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " | ")
}
