package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/measure"
)

// Sandbox runs one command at a time and counts it; *measure.Sandbox implements it. Only the goroutine that runs the job
// calls it: the slot is the lock. It must not be nil.
type Sandbox interface {
	Run(context.Context, measure.Command) (measure.Sample, error)
	// WorkDir is the slot's directory. Everything is prepared and measured in it.
	WorkDir() string
	// TempDir is the TMPDIR and HOME of every command.
	TempDir() string
}

// Machine carries out jobs, one at a time.
type Machine struct {
	Sandbox Sandbox
	// Counters says which performance counters work. All hardware counters that
	// do are measured.
	Counters measure.CounterSupport
	// CacheDir is the suite's directory for files that outlive jobs, such as
	// downloads.
	CacheDir string
	// CPUs is the number of CPUs that commands may use.
	CPUs int
	// Owner is the user that the sandbox's commands run as; nil is this
	// process's own.
	Owner *Owner
	// Environ is the collector's own environment, from which steps may ask for
	// variables by name.
	Environ []string
	// MaxBlock is the longest predicted duration of a block; beyond it, test cases
	// are delivered one by one. The first round predicts it. 0 means
	// [DefaultMaxBlock].
	MaxBlock time.Duration
	// Now is the clock.
	Now func() time.Time
	// Log receives what steps and commands print, under a header each; nil
	// discards it. It bounds itself; its errors are of no consequence.
	Log io.Writer
	// Points, when set, is called at the beginning of each phase, with its
	// name: the places where failure tests stop or kill a collector.
	Points func(point string)
	// Sampled, when set, is called with what each command cost, also one that
	// failed.
	Sampled func(measure.Sample)
}

func (m Machine) check() error {
	switch {
	case m.Sandbox == nil || m.Now == nil:
		return errors.New("machine: it needs a sandbox and a clock")
	case m.CPUs < 1:
		return fmt.Errorf("machine: %d CPUs; it needs at least one", m.CPUs)
	case m.CacheDir != "" && !filepath.IsAbs(m.CacheDir):
		return fmt.Errorf("machine: the cache directory %s must be absolute", m.CacheDir)
	}
	return nil
}

func (m Machine) maxBlock() time.Duration {
	if m.MaxBlock > 0 {
		return m.MaxBlock
	}
	return DefaultMaxBlock
}

// place is a directory in the sandbox's own, of a path length that is a
// multiple of 64: lengths shift stacks and thereby results, and collectors have
// names of different lengths.
func (m Machine) place(name string) string {
	const step = 64
	dir := filepath.Join(m.Sandbox.WorkDir(), name)
	return dir + strings.Repeat("_", (step-len(dir)%step)%step)
}

// baseEnv is the environment below that of a suite.
func (m Machine) baseEnv() []string {
	return measure.BaseEnv(m.Sandbox.TempDir(), m.Sandbox.TempDir())
}

// ownSecrets begin the names of variables that no benchmark ever sees.
var ownSecrets = []string{"BENCHLOOM_", "TEMPORAL_", "DATABASE_", "PG"}

// passed picks variables of the collector's own environment.
func (m Machine) passed(names []string) ([]string, error) {
	var env []string
	for _, name := range names {
		for _, prefix := range ownSecrets {
			if strings.HasPrefix(strings.ToUpper(name), prefix) {
				return nil, fmt.Errorf("pass_env names %s: variables that begin with %s are the collector's own and are never passed", name, prefix)
			}
		}
		for _, entry := range m.Environ {
			if key, _, ok := strings.Cut(entry, "="); ok && key == name {
				env = append(env, entry)
			}
		}
	}
	return env, nil
}

// mergeEnv lays environments over each other: the last value of a name counts.
// The order is that of first appearance, so that equal recipes give equal
// environments.
func mergeEnv(layers ...[]string) []string {
	var merged []string
	at := map[string]int{}
	for _, layer := range layers {
		for _, entry := range layer {
			name, _, _ := strings.Cut(entry, "=")
			if i, ok := at[name]; ok {
				merged[i] = entry
				continue
			}
			at[name] = len(merged)
			merged = append(merged, entry)
		}
	}
	return merged
}
