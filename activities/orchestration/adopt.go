package orchestration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// A run goes on while Temporal is away, and its collector tells the API so. When Temporal
// is back, or its database is a new one, the record decides: the run is adopted, that is,
// awaited instead of replaced, or it has ended meanwhile.

// byRun answers an assessment whose failure says nothing about the run, or whose run was
// awaited, if that run goes on or has ended well. Otherwise the answer is nil, and the
// returned input has the kind of failure that the run has ended with.
func (a *Activities) byRun(ctx context.Context, in protocol.AssessInput) (*protocol.Assessment, protocol.AssessInput, error) {
	if !in.Unseen && in.Awaited == "" {
		return nil, in, nil
	}
	runs, err := a.Store.JobRuns(ctx, in.Key)
	if err != nil {
		return nil, in, err
	}
	run := runOf(runs, in)
	switch {
	case run == nil:
	case run.Open() && in.Unseen:
		adopt, err := a.goesOn(ctx, runs)
		if err != nil || adopt.Run != "" {
			return &protocol.Assessment{Adopt: adopt}, in, err
		}
	case run.Outcome == bench.RunSuccess:
		return &protocol.Assessment{}, in, nil
	case !run.Open():
		in.Kind = run.Outcome.FailureKind()
		if run.Message != "" {
			in.Message = run.Message
		}
	}
	return nil, in, nil
}

// runOf returns the run that an assessment is about, of the runs of its job; nil if none
// has begun.
func runOf(runs []bench.Run, in protocol.AssessInput) *bench.Run {
	for i := len(runs) - 1; i >= 0; i-- {
		switch r := &runs[i]; {
		case r.Rerun != in.Rerun: // it was asked for again since
		case in.Awaited != "":
			if r.ID == in.Awaited {
				return r
			}
		case r.Open() || r.Number > in.Unbegun.Runs: // not one that was assessed before
			return r
		}
	}
	return nil
}

// goesOn returns a job's open run if the run's collector may still be at it: it beats with
// the run, or no collector beats at all, because the API or the record was away, too. If
// only that collector is silent, it has died with its run.
func (a *Activities) goesOn(ctx context.Context, runs []bench.Run) (protocol.Adopted, error) {
	for _, r := range runs {
		if !r.Open() {
			continue
		}
		fresh := a.OfflineAfter / 3
		seen, err := a.Store.SightRun(ctx, r.ID, fresh)
		if err != nil {
			return protocol.Adopted{}, err
		}
		if seen.Run.Open() && seen.Registered && seen.Current && (seen.Silence <= fresh || !seen.OthersBeat) {
			return protocol.Adopted{Run: r.ID, Number: r.Number, Collector: r.Collector}, nil
		}
	}
	return protocol.Adopted{}, nil
}

// AwaitRun looks at an adopted run. It fails, to be repeated, while the run's collector
// beats with it.
//
// A collector that has been silent for half of OfflineAfter, or beats without the run, is
// doubtful: its heartbeats may not have come through, or not in order. If it still is
// at the second look, it is gone. A collector that was registered again, or removed, is
// gone immediately.
func (a *Activities) AwaitRun(ctx context.Context, in protocol.AwaitInput) (protocol.AwaitResult, error) {
	silent := a.OfflineAfter / 2
	seen, err := a.Store.SightRun(ctx, in.Run, silent)
	if errors.Is(err, store.ErrNotFound) {
		return protocol.AwaitResult{Sight: protocol.RunGone, Message: fmt.Sprintf("run %s is no longer in the record", in.Run)}, nil
	}
	if err != nil {
		return protocol.AwaitResult{}, err
	}
	run := seen.Run
	gone := func(sight protocol.RunSight, why string) protocol.AwaitResult {
		return protocol.AwaitResult{Sight: sight, Message: fmt.Sprintf("run %d was lost: collector %s %s", run.Number, run.Collector, why)}
	}
	why := ""
	switch {
	case !run.Open():
		return protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: run.Outcome, Message: strings.TrimSuffix(fmt.Sprintf("run %d ended with %s: %s", run.Number, run.Outcome, run.Message), ": ")}, nil
	case !seen.Registered:
		return gone(protocol.RunGone, "was started again, or removed"), nil
	case !seen.Current:
		why = "no longer carries it out"
	case seen.Silence > silent:
		why = "is silent"
	}
	switch {
	case why != "" && in.Doubted:
		return gone(protocol.RunGone, why), nil
	case why != "":
		return gone(protocol.RunDoubtful, why), nil
	case in.Doubted:
		return protocol.AwaitResult{Sight: protocol.RunGoesOn}, nil
	}
	return protocol.AwaitResult{}, temporal.NewApplicationErrorWithOptions(fmt.Sprintf("run %d goes on at collector %s", run.Number, run.Collector),
		protocol.ErrTypeGoesOn, temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
}
