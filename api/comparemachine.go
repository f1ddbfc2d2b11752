package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

type comparedMachine struct {
	Project string `query:"project" required:"true"`
	A       string `query:"a" doc:"Tag of the baseline; absent: what B was or will be compared with by its own request."`
	B       string `query:"b" required:"true" doc:"Tag of the artifact to judge."`
	Row     string `query:"row" required:"true" maxLength:"3000" doc:"ID of the row, as for its values." example:"gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"`
	Format  string `query:"format" enum:"json,csv" default:"json"`
}

// maxMachineRuns bounds the runs of a side that are looked at; a row rarely has more than one, or one for each look.
const maxMachineRuns = 12

// comparedMachine tells what the machine did while the values of a row were measured.
func (s *resultHandlers) comparedMachine(ctx context.Context, in *comparedMachine) (*written, error) {
	row := comparedValues{in.Project, in.A, in.B, in.Row}
	found, key, err := s.valuesOf(ctx, &row)
	if err != nil {
		return nil, err
	}
	in.A, in.B = row.A, row.B
	out := apiclient.ComparedMachine{Project: in.Project, A: in.A, B: in.B, Row: in.Row}
	known := make(map[bench.RunID]store.Profile) // what was measured in turns is of both sides
	for _, side := range []apiclient.MachineSide{{Side: "a", Tag: in.A}, {Side: "b", Tag: in.B}} {
		runs, more := runsOfSide(found.Values, side.Side)
		side.Runs, side.More = []apiclient.MachineRun{}, more
		var summaries []profiler.Summary
		for _, run := range runs {
			p, read := known[run.Run]
			if !read {
				switch p, err = s.profiles.Profile(ctx, run.Run); {
				case errors.Is(err, store.ErrNotFound):
					p.Over = true // it was removed meanwhile
				case err != nil:
					return nil, err
				}
				known[run.Run] = p
			}
			one, summary := machineRun(run, p, side.Tag, results.TestCase(key.TestCase))
			side.Runs = append(side.Runs, one)
			summaries = append(summaries, summary)
		}
		side.Series = profiler.SumUp(summaries)
		out.Sides = append(out.Sides, side)
	}
	if in.Format == "csv" {
		return &written{ContentType: "text/csv; charset=utf-8", Body: machineCSV(out)}, nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding what the machine did: %w", err)
	}
	return &written{ContentType: "application/json", Body: body}, nil
}

// sideRun is a run that measured values of a side.
type sideRun struct {
	apiclient.ComparedValue
	values int
}

// runsOfSide lists the runs that measured the values of a side that are compared, in the order of measuring, and counts those
// that are left out.
func runsOfSide(values []apiclient.ComparedValue, side string) (runs []sideRun, more int) {
	places := make(map[bench.RunID]int)
	for _, v := range values {
		if v.Side != side || v.Elsewhere {
			continue
		}
		at, there := places[v.Run]
		if !there {
			at = len(runs)
			places[v.Run], runs = at, append(runs, sideRun{ComparedValue: v})
		}
		runs[at].values++
	}
	n := min(len(runs), maxMachineRuns)
	return runs[:n], len(runs) - n
}

// machineRun tells what was recorded of a run while it measured a test case of an artifact.
func machineRun(run sideRun, p store.Profile, tag string, tc bench.TestCase) (apiclient.MachineRun, profiler.Summary) {
	out := apiclient.MachineRun{Run: run.Run, Collector: run.Collector, InTurns: run.InTurns, State: apiclient.MachineNone}
	var found profiler.Summary
	cut := 0
	for _, a := range p.Attempts {
		if a.Summary == nil {
			cut++
			continue
		}
		// Of several attempts, the last one that has measured it: each numbers its commands anew.
		if of := a.Summary.Of(tag, tc.String()); len(of.Commands) > 0 {
			found = of
		}
	}
	iterations := make(map[int]bool) // one that is repeated has several commands
	for _, c := range found.Commands {
		iterations[c.Iteration] = true
	}
	switch {
	case len(found.Series) > 0 && len(iterations) >= run.values:
		out.State = apiclient.MachineWhole
	case len(found.Series) > 0:
		out.State = apiclient.MachinePart
		out.Why = fmt.Sprintf("%d of %s were recorded", len(iterations), count(run.values, "iteration"))
	case !p.Over:
		out.State, out.Why = apiclient.MachinePending, "the run goes on, and sums its measured commands up at its end"
	case cut > 0:
		out.State, out.Why = apiclient.MachinePart, "the recording was cut off before its end, so its measured commands were not summed up; the page of the run has the samples that arrived"
	case len(p.Attempts) > 0:
		out.Why = "what was recorded has no series of the system during this test case"
	default:
		out.Why = "nothing was recorded, or it was removed for its age"
	}
	out.Commands, out.Series = notNil(found.Commands), notNil(found.Series)
	return out, found
}

// machineCSV writes a row for each measured command and series.
func machineCSV(m apiclient.ComparedMachine) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	write := func(cells ...string) { _ = w.Write(cells) } // into memory
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	write("side", "tag", "run", "collector", "in_turns", "state", "batch", "iteration", "scope", "metric", "device", "unit", "mean", "max")
	for _, side := range m.Sides {
		for _, r := range side.Runs {
			of := []string{side.Side, side.Tag, string(r.Run), r.Collector, strconv.FormatBool(r.InTurns), string(r.State)}
			if len(r.Series) == 0 { // what was not recorded is named as well
				write(append(of[:len(of):len(of)], "", "", "", "", "", "", "", "")...)
			}
			iterations := make(map[int]int, len(r.Commands))
			for _, c := range r.Commands {
				iterations[c.Batch] = c.Iteration
			}
			for _, series := range r.Series {
				for i, batch := range series.Batches {
					write(append(of[:len(of):len(of)], strconv.Itoa(batch), strconv.Itoa(iterations[batch]), string(series.Scope), series.Name, series.Device, string(series.Unit),
						number(series.Mean[i]), number(series.Max[i]))...)
				}
			}
		}
	}
	w.Flush()
	return out.Bytes()
}
