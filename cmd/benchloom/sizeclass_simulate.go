package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/sizeclass/simulate"
)

// maxSimulation bounds the file of a simulation, in bytes.
const maxSimulation = 1 << 20

func newSizeClassSimulate() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "simulate --file FILE",
		Short: "Simulate the choice of size classes for a job",
		Long: `Runs a modelled job repeatedly, each time on the size class that the service would
choose for it, and shows the cost. No service needs to run. The file, or standard
input for "-", is

  {"classes": [1, 2, 4, 8],
   "policy": {"exponent": 0.5, "timeout_multiplier": 1.5, "minimum": "10s", "history": 32},
   "original_timeout": "30m", "runs": 500, "seed": 1,
   "shape": {"durations": {"1": "60s", "2": "60s", "4": "60s", "8": "60s"}, "noise": 0.1,
             "fails_below": 0, "fails_after": "5s",
             "drift_at": 0, "durations_after": {}}}

Durations are multiplied by a log-normal factor whose logarithm has the standard
deviation "noise". Below class "fails_below", the job runs out of memory after
"fails_after". From run "drift_at" on, it takes "durations_after".

Optional in "policy" are failure_cache, maximum_timeout, default_timeout, stepwise,
probe_budget, probe_expiry and recheck; optional in "shape" are "tail" and
"bimodal", {"probability": 0.05, "factor": 10} each, which make some attempts
longer, and "failure_rate", the share of attempts that fail on any class. Omitted
fields of "policy" have their defaults.

Latency and core-seconds (time × class) of a run include all its attempts; its
class and outcome (success, timeout, oom or failure) are those of the last attempt.
Means are taken over runs 1-10, 11-50 and all later ones.`,
		Example: `  benchloom sizeclass simulate --file job.json
  benchloom sizeclass simulate --file - -o json < job.json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(errors.New("--file is missing; name a file with a simulation, or - for standard input"))
			}
			text, err := readSimulation(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			in, err := simulate.Decode(text)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			result, err := simulate.Simulate(in, rand.New(rand.NewPCG(in.Seed, 0)))
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			return show(cmd, output, result, cli.Simulation)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file with a simulation; - for standard input")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func readSimulation(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading the simulation: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSimulation+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the simulation from %s: %w", name, err)
	case len(text) > maxSimulation:
		return nil, fmt.Errorf("reading the simulation from %s: it is larger than %d MB", name, maxSimulation>>20)
	}
	return text, nil
}
