package measure

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DefaultOutputLimit is the number of bytes kept of each output if a command sets no limit.
const DefaultOutputLimit = 1 << 20

// Command is a program call to measure.
type Command struct {
	// Argv is the program and its arguments. A program without a slash is looked up in PATH of Env, one with a slash is
	// relative to Dir.
	Argv []string
	// Dir is the working directory; empty means the sandbox's work directory.
	Dir string
	// Env is the whole environment, "NAME=value" each; nothing is inherited. TMPDIR is always set to [Sandbox.TempDir],
	// whatever Env says, because leftovers of a killed collector are recognised by it. See [BaseEnv].
	Env []string
	// Output receives standard output and standard error as they arrive; nil discards both. Its Write must not block for
	// long: the command waits for it.
	Output io.Writer
	// Stdout, when set, receives standard output alone, in addition to Output.
	Stdout io.Writer
	// OutputLimit limits the bytes passed to each of Output and Stdout; 0 means [DefaultOutputLimit]. Further bytes are
	// counted and dropped while the command continues.
	OutputLimit int64
	// Timeout limits the wall time; 0 means that only the context does.
	Timeout time.Duration
	// Counters are the performance counters to read; those that the machine lacks are absent from the sample.
	Counters []Counter
	// Nice is the scheduling priority, -20 (highest) to 19; 0 leaves the collector's own.
	Nice int
	// FreshTemp empties the temporary directory before the command starts.
	FreshTemp bool
	// Begin, if set, is called right before the command starts, when everything else is done and the calling process keeps off
	// the command's CPUs (see [SandboxConfig.Lend]), for callers that read the machine before and after. It is not called if the
	// command cannot be prepared, say because its program does not exist.
	Begin func()
	// Network gives the command the machine's network; without it, an isolated command has only a loopback interface of its own.
	Network bool
}

// StartError reports a command that could not be started; nothing was measured.
type StartError struct {
	// Program is the first argument of the command.
	Program string
	// Err is the reason; [fs.ErrNotExist] when the program or the working directory does not exist.
	Err error
}

func (e *StartError) Error() string { return fmt.Sprintf("starting command %q: %v", e.Program, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// BaseEnv returns the short, fixed environment of a command: the same on every machine, because the size of the environment
// shifts the stack and thereby results.
func BaseEnv(tmpdir, home string) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + home,
		"TMPDIR=" + tmpdir,
		"LANG=C",
		"LC_ALL=C",
		"TZ=UTC",
	}
}

func (c Command) check() error {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return errors.New("the command is empty")
	case c.Timeout < 0:
		return fmt.Errorf("the timeout must not be negative, is %v", c.Timeout)
	case c.OutputLimit < 0:
		return fmt.Errorf("the output limit must not be negative, is %d", c.OutputLimit)
	case c.Nice < -20 || c.Nice > 19:
		return fmt.Errorf("nice must be within -20 to 19, is %d", c.Nice)
	}
	return nil
}

// program finds the file to execute, the way a shell would with the command's own environment. dir is the working directory.
func (c Command) program(dir string) (string, error) {
	name := c.Argv[0]
	if info, err := os.Stat(dir); err != nil {
		return "", &StartError{Program: name, Err: fmt.Errorf("working directory: %w", err)}
	} else if !info.IsDir() {
		return "", &StartError{Program: name, Err: fmt.Errorf("working directory %s is not a directory", dir)}
	}
	if strings.ContainsRune(name, '/') {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", &StartError{Program: name, Err: err}
		}
		return path, nil
	}
	search := lookupEnv(c.Env, "PATH")
	found := fmt.Errorf("%w in PATH (%s)", fs.ErrNotExist, search)
	for folder := range strings.SplitSeq(search, ":") {
		if folder == "" {
			continue // never find a program in the working directory by accident
		}
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		path := filepath.Join(folder, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			found = err
		}
	}
	return "", &StartError{Program: name, Err: found}
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file: %w", path, fs.ErrPermission)
	}
	return nil
}

// lookupEnv returns the last value of a variable.
func lookupEnv(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if key, v, ok := strings.Cut(entry, "="); ok && key == name {
			value = v
		}
	}
	return value
}

// setEnv returns env with exactly one value for the variable.
func setEnv(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if key, _, ok := strings.Cut(entry, "="); !ok || key != name {
			out = append(out, entry)
		}
	}
	return append(out, name+"="+value)
}
