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
// calls it, holding the slot. It must not be nil.
type Sandbox interface {
	Run(context.Context, measure.Command) (measure.Sample, error)
	// WorkDir returns the slot's directory, in which everything is prepared and measured.
	WorkDir() string
	// Show lets commands see directories wherever they lie, instead of those of the last call, until Clean.
	Show(measure.Shown) error
	// Clean removes everything in that directory, and in the temporary ones of commands, and hides what was shown.
	Clean(context.Context) error
	// TempDir returns the TMPDIR and HOME of every command.
	TempDir() string
	// Stuck returns why nothing can run in the slot until this process has been replaced; else nil. It is also called
	// between jobs.
	Stuck() error
}

// Machine describes the machine that jobs run on, one at a time.
type Machine struct {
	Sandbox Sandbox
	// Counters tells which performance counters work. All working hardware counters are measured.
	Counters measure.CounterSupport
	// CacheDir is the suite's directory for files that outlive jobs, such as
	// downloads. Other jobs do not see it. The directory above it exists.
	CacheDir string
	// CPUs is the number of CPUs that commands may use.
	CPUs int
	// Owner is the user that the sandbox's commands run as; nil means the user of this process.
	Owner *Owner
	// Environ is the collector's own environment, from which steps may ask for
	// variables by name.
	Environ []string
	// PassEnv lists the variables that steps may ask for; "NAME*" stands for all that begin with NAME. Nil allows all, as when
	// a person measures on their own machine.
	PassEnv []string
	// MaxBlock limits the duration of a block as predicted by its first round; above it, test cases are delivered one by
	// one. 0 means [DefaultMaxBlock].
	MaxBlock time.Duration
	// Now is the clock.
	Now func() time.Time
	// Log receives the output of steps and commands, each under a header; nil discards it. The writer must limit itself; its
	// errors are ignored.
	Log io.Writer
	// Points, if set, is called at the start of each phase with its name, for failure tests that stop or kill a collector
	// there.
	Points func(point string)
	// Disk, if set, keeps commands from using the room that the service needs.
	Disk *Disk
	// Readings reads the machine around each measured command; nil means that it is not read and no iteration counts as
	// disturbed.
	Readings Readings
	// CoLocated is set if the machine does other work by configuration: disturbed iterations are marked, but not repeated
	// in vain.
	CoLocated bool
	// Sampled, if set, is called with the sample of each command, including failed ones.
	Sampled func(measure.Sample)
	// Watcher, if set, accompanies each job.
	Watcher Watcher
	// Leave, if set, is called once nothing in the slot is needed any more, at the latest at the end of the job: the caller cleans
	// it then, while the job is handed in. It must not wait. If Leave is nil, the slot is clean when the job has ended.
	Leave func()
}

func (m Machine) check() error {
	switch {
	case m.Sandbox == nil || m.Now == nil:
		return errors.New("machine: a sandbox and a clock are required")
	case m.CPUs < 1:
		return fmt.Errorf("machine: %d CPUs; at least one is required", m.CPUs)
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

// place returns a directory below the sandbox's, padded to a path length that is a multiple of 64: lengths shift stacks and
// thereby results, and collectors have names of different lengths.
func (m Machine) place(name string) string {
	const step = 64
	dir := filepath.Join(m.Sandbox.WorkDir(), name)
	return dir + strings.Repeat("_", (step-len(dir)%step)%step)
}

// baseEnv returns the environment that a suite's own variables are added to.
func (m Machine) baseEnv() []string {
	return measure.BaseEnv(m.Sandbox.TempDir(), m.Sandbox.TempDir())
}

// mergeEnv merges environments: the last value of a name wins. Names keep the order of their first appearance, so that equal
// recipes give equal environments.
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
