package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
)

// shell answers commands by their first words.
type shell map[string]func(io.Writer) (measure.Sample, error)

func (shell) TempDir() string { return "/slot/tmp" }
func (shell) WorkDir() string { return "/slot" }

func (s shell) Run(_ context.Context, c measure.Command) (measure.Sample, error) {
	line := strings.Join(c.Argv, " ")
	for words, answer := range s {
		if strings.HasPrefix(line, words) {
			return answer(c.Output)
		}
	}
	return measure.Sample{Status: measure.StatusNotStarted}, &measure.StartError{Program: c.Argv[0], Err: fs.ErrNotExist}
}

func ends(code int, text string) func(io.Writer) (measure.Sample, error) {
	return func(out io.Writer) (measure.Sample, error) {
		fmt.Fprint(out, text)
		return measure.Sample{Status: measure.StatusExited, ExitCode: code}, nil
	}
}

func TestAProgramWorksIfItsTrialsSucceed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine        shell
		reason, remedy string
	}{
		"works":           {machine: shell{"perf record": ends(0, ""), "perf script": ends(0, "")}},
		"is missing":      {shell{}, "it is not installed", "install the package linux-perf (Debian)"},
		"is refused":      {shell{"perf record": ends(255, "Error:\nAccess is limited.\n")}, "fails: Access is limited.", "kernel.perf_event_paranoid=2"},
		"cannot be read":  {shell{"perf record": ends(0, ""), "perf script": ends(1, "")}, "'perf script -i /slot/tmp/benchloom-trial' fails: it printed nothing", "perf_event_paranoid"},
		"hangs":           {shell{"perf record": func(io.Writer) (measure.Sample, error) { return measure.Sample{Status: measure.StatusTimedOut}, nil }}, "did not end within 1m0s", ""},
		"has no launcher": {shell{"perf record": func(io.Writer) (measure.Sample, error) { return measure.Sample{}, errors.New("no process left") }}, "no process left", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried, err := probe.Programs(t.Context(), c.machine, bench.Programs()[:1], probe.Working)
			require.NoError(t, err)
			require.Len(t, tried, 1)
			require.Equal(t, "perf", tried[0].Name)
			require.Equal(t, c.reason == "", tried[0].Works())
			require.Contains(t, tried[0].Reason, c.reason)
			require.Contains(t, tried[0].Remedy, c.remedy)
		})
	}
}

func TestEveryProgramHasATrial(t *testing.T) {
	t.Parallel()
	for _, depth := range []probe.Depth{probe.Installed, probe.Working} {
		tried, err := probe.Programs(t.Context(), shell{}, bench.Programs(), depth)
		require.NoError(t, err)
		require.Len(t, tried, len(bench.Programs()))
		for _, program := range tried {
			require.Equal(t, "it is not installed", program.Reason, program.Name)
		}
	}
}

func TestACollectorsStartMakesNoProfile(t *testing.T) {
	t.Parallel()
	machine := shell{"perf stat": ends(0, ""), "valgrind --version": ends(0, "valgrind-3.24.0\n")}
	tried, err := probe.Programs(t.Context(), machine, bench.Programs(), probe.Installed)
	require.NoError(t, err)
	for _, program := range tried {
		require.True(t, program.Works(), "%+v", program)
	}
}

func TestTrialsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped"))
	_, err := probe.Programs(ctx, shell{}, bench.Programs(), probe.Working)
	require.EqualError(t, err, "stopped")
}
