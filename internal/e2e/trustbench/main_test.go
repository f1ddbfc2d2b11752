package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/up"
)

// The load is this program, also in tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == burnCommand {
		os.Exit(command())
	}
	goleak.VerifyTestMain(m)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"argument":       {"all"},
		"no state":       {"-state", ""},
		"no piece":       {"-piece", "10s"},
		"one request":    {"-requests", "1"},
		"no slowdown":    {"-slowdowns", "0"},
		"unknown option": {"-fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Error(t, run(t.Context(), args, &stdout, &stderr))
			require.Empty(t, stdout.String())
		})
	}
}

func TestMissingProgramSaysWhatToDo(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	err := run(t.Context(), []string{"-state", dir, "-program", dir + "/benchloom", "-temporal-program", dir + "/temporal-dev"}, &stdout, &stderr)
	require.ErrorContains(t, err, "make build")
}

func TestAReportNeedsNoService(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-state", t.TempDir(), "-report"}, &stdout, &stderr))
	require.Contains(t, stdout.String(), "0 of 80 trials")
	require.Contains(t, stdout.String(), "| 10 % slower under load: *changed* | 0 of 0 | – | – | at least 60 % |")
}

// The load ends with the program that started it, whose end closes its input.
func TestTheLoadEndsWithItsInput(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.Command(self, burnCommand)
	input, err := command.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	require.NoError(t, input.Close())
	require.NoError(t, command.Wait())
	require.NoError(t, burn(strings.NewReader("")))
}

func TestALoadTellsWhenItRan(t *testing.T) {
	t.Parallel()
	cores, err := up.AvailableCores()
	require.NoError(t, err)
	phase := phases(1)
	require.GreaterOrEqual(t, phase(), shortestPhase)
	require.LessOrEqual(t, phase(), longestPhase)
	begun := time.Now()
	short := make(chan struct{})
	n := 0
	l := startLoad(t.Context(), cores[:1], func() time.Duration {
		if n++; n == 5 {
			close(short)
		}
		return time.Millisecond
	})
	<-short
	ran, err := l.stop()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(ran), 2)
	last := begun
	for _, r := range ran {
		require.False(t, r.from.Before(last))
		require.False(t, r.to.Before(r.from))
		last = r.to
	}
}
