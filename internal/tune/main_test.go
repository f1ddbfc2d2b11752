//go:build unix

package tune_test

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

// childEnv makes this binary a process that tunes, restores or recovers, and kills
// itself at a step.
const childEnv = "TUNE_CHILD"

// child describes that process.
type child struct {
	Root   string
	CPUs   measure.CPUList
	Action string
	// KillAt counts the steps, from 1 on; 0 never kills.
	KillAt int
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		os.Exit(runChild(text))
	}
	goleak.VerifyTestMain(m)
}

func runChild(text string) int {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	steps := 0
	tuner := newTuner(c.Root, c.CPUs)
	tuner.Reach = func(context.Context, string) {
		if steps++; steps == c.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if _, err := act(tuner, c.Action); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(steps))
	return 0
}

func act(tuner tune.Tuner, action string) (tune.Outcome, error) {
	switch action {
	case "tune":
		return tuner.Tune(context.Background())
	case "restore":
		return tuner.Restore(context.Background())
	}
	return tuner.Recover(context.Background())
}

func newTuner(root string, cpus measure.CPUList) tune.Tuner {
	return tune.Tuner{
		Machine: tune.Machine{Root: root, CPUs: cpus},
		Now:     func() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) },
	}
}
