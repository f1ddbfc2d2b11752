package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// trialTimeout bounds a trial, which takes less than a second on an idle machine.
const trialTimeout = time.Minute

// Runner runs commands as a job would; *measure.Sandbox implements it. It is called under no
// lock, one command at a time. It must not be nil.
type Runner interface {
	Run(ctx context.Context, c measure.Command) (measure.Sample, error)
	TempDir() string
	WorkDir() string
}

// Tried is the program of a profiler after its trial on this machine.
type Tried struct {
	Name string `json:"name"`
	// Reason says why it cannot be used, and Remedy what helps; empty if it can.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Works reports whether jobs can use the program.
func (t Tried) Works() bool { return t.Reason == "" }

// Depth says how much a trial is to find out.
type Depth int

const (
	// Installed finds programs that are missing, and kernels that refuse to count for perf. It takes less
	// than a tenth of a second of CPU time: each collector does it at its start.
	Installed Depth = iota
	// Working also makes a profile: valgrind needs the symbols of the dynamic linker, for example. It takes a second.
	Working
)

// trials returns commands that succeed where a program works.
func trials(name, dir string, depth Depth) [][]string {
	if depth == Installed {
		return map[string][][]string{
			"perf":     {{"perf", "stat", "-e", "cpu-clock", "--", "true"}},
			"valgrind": {{"valgrind", "--version"}},
		}[name]
	}
	file := filepath.Join(dir, "benchloom-trial")
	return map[string][][]string{
		"perf": {
			{"perf", "record", "-q", "-F", "999", "--call-graph", "fp", "-o", file, "--", "true"},
			{"perf", "script", "-i", file},
		},
		"valgrind": {{"valgrind", "-q", "--tool=none", "--", "true"}},
	}[name]
}

// Programs tries the programs of profilers. The error is that of the context.
func Programs(ctx context.Context, in Runner, programs []bench.Program, depth Depth) ([]Tried, error) {
	var out []Tried
	for _, p := range programs {
		t := Tried{Name: p.Name}
		for _, argv := range trials(p.Name, in.TempDir(), depth) {
			t.Reason, t.Remedy = try(ctx, in, p, argv)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if t.Reason != "" {
				break
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func try(ctx context.Context, in Runner, p bench.Program, argv []string) (reason, remedy string) {
	var printed bytes.Buffer
	sample, err := in.Run(ctx, measure.Command{
		Argv: argv, Dir: in.WorkDir(), Env: measure.BaseEnv(in.TempDir(), in.WorkDir()), Output: &printed, OutputLimit: 4 << 10, Timeout: trialTimeout,
	})
	start, unstarted := errors.AsType[*measure.StartError](err)
	switch {
	case unstarted && errors.Is(err, fs.ErrNotExist):
		return "it is not installed", "install the package " + p.Package
	case unstarted:
		return start.Error(), "install the package " + p.Package + " anew"
	case err != nil:
		return err.Error(), ""
	case sample.Status != measure.StatusExited:
		return fmt.Sprintf("'%s' did not end within %v (%s)", strings.Join(argv, " "), trialTimeout, sample.Status), ""
	case sample.ExitCode != 0:
		return fmt.Sprintf("'%s' fails: %s", strings.Join(argv, " "), lastLine(printed.String())), remedies[p.Name]
	}
	return "", ""
}

// remedies help where a program is installed but fails.
var remedies = map[string]string{
	"perf":     "'sysctl kernel.perf_event_paranoid=2' lets everybody count their own programs; a container also needs a seccomp profile that permits perf_event_open",
	"valgrind": "install the debugging symbols of libc: the package libc6-dbg (Debian, Ubuntu)",
}

// lastLine returns the last line that is not empty, cut.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "it printed nothing"
	}
	return strings.ToValidUTF8(fmt.Sprintf("%.300s", text[strings.LastIndexByte(text, '\n')+1:]), "")
}
