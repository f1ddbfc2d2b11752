package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestMain(m *testing.M) {
	measure.InitMain()
	if len(os.Args) == 3 && os.Args[1] == loopCommand { // this program as the measured load
		if err := loop(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == profileCommand { // this program with agents
		if err := runAgents(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"argument":       {"all"},
		"no repetition":  {"-repetitions", "0"},
		"no submission":  {"-submissions", "0"},
		"no pair":        {"-pairs", "0"},
		"hardly idle":    {"-idle", "10ms"},
		"no isolation":   {"-isolation-pairs", "0"},
		"many profiles":  {"-profile-pairs", "201"},
		"brief profile":  {"-profile-time", "1ms"},
		"no seed":        {"-seeds", "0"},
		"no unit":        {"-unit", "0s"},
		"little waits":   {"-much", "100"},
		"most is less":   {"-most", "9999"},
		"unknown part":   {"-only", "memory"},
		"no request":     {"-requests", "0"},
		"no waiting job": {"-page-jobs", "0"},
		"hardly asked":   {"-page-time", "10ms"},
		"no year":        {"-artifacts", "0"},
		"hardly a look":  {"-result-time", "10ms"},
		"unknown noise":  {"-noise", "loud"},
		"unknown option": {"-fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Error(t, run(t.Context(), args, &stdout, &stderr))
			require.Empty(t, stdout.String())
		})
	}
	o, err := parse([]string{"-only", "wrapper"}, &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, o.measures(partWrapper))
	require.False(t, o.measures(partStack))
}

func TestACheckIsShorterUnlessTold(t *testing.T) {
	t.Parallel()
	measured := func(args ...string) [4]int {
		o, err := parse(args, &bytes.Buffer{})
		require.NoError(t, err)
		return [4]int{o.repetitions, o.submissions, o.makespan.seeds, o.verdicts.requests}
	}
	require.Equal(t, [4]int{5, 300, 20, 1000}, measured())
	require.Equal(t, [4]int{3, 200, 5, 1000}, measured("-check"))
	require.Equal(t, [4]int{5, 200, 20, 300}, measured("-check", "-repetitions", "5", "-seeds", "20", "-requests", "300"))
}

func TestLoop(t *testing.T) {
	t.Parallel()
	require.NoError(t, run(t.Context(), []string{loopCommand, "1000"}, nil, nil))
	require.ErrorContains(t, run(t.Context(), []string{loopCommand, "many"}, nil, nil), "rounds")
}

func TestMachineHasNoEmptyKeys(t *testing.T) {
	t.Parallel()
	for _, c := range machine() {
		require.NotEmpty(t, c[0])
		require.Equal(t, strings.ToLower(c[0]), c[0], "keys of the benchmark format are lower-case")
	}
}
