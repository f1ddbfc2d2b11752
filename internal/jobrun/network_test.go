//go:build unix

package jobrun_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

func TestOnlyWhatIsMeasuredHasNoNetwork(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	network := make(map[string]bool)
	b.sandbox.started = func(c measure.Command) { network[c.Argv[len(c.Argv)-1]] = c.Network }
	s := shellSuite{
		preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Requires: []suite.Requirement{{Run: []string{"sh", "-c", ": requirement"}}}, Steps: []suite.Step{step(p, ": prepare")}}, nil
		},
		recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
			asking := workStep(p, ": before that asks "+tc.Scenario)
			asking.Network = true
			measured := sh(p, ": measured "+tc.Scenario)
			measured.Network = tc.Scenario == "open"
			return suite.Recipe{
				Prepare: []suite.Step{workStep(p, ": prepare of "+tc.Scenario)}, Before: []suite.Step{workStep(p, ": before "+tc.Scenario), asking}, Measure: measured,
			}, nil
		},
	}
	require.NoError(t, b.run(t, b.job(t, s, "gin/closed", "gin/open")))
	require.Len(t, network, 10)
	for command, has := range network {
		require.Equal(t, strings.Contains(command, "prepare") || strings.Contains(command, "requirement") || strings.Contains(command, "asks") || command == ": measured open",
			has, command)
	}

	clear(network)
	command := jobrun.Job{Kind: bench.KindCommand, TestCases: []bench.TestCase{testCase("adhoc/")}, Command: &jobrun.Command{Argv: []string{"sh", "-c", ": submitted"}}}
	require.NoError(t, b.run(t, command))
	require.Equal(t, map[string]bool{": submitted": true}, network)
}
