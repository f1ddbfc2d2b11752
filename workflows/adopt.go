package workflows

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// A run goes on while Temporal is away, and its collector tells the API so. The workflow
// then adopts it: instead of dispatching the job again, it waits for the run's end in the
// record.

// adoption is the change that made workflows ask for runs that go on.
const adoption = "adoption"

// errGoesOn says that the adopted run goes on.
var errGoesOn = errors.New("the adopted run goes on")

// unseen reports whether an error of a RunJob activity says nothing about the run: no
// heartbeat has arrived, or another run of the job goes on.
func unseen(err error) bool {
	var application *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &timeout):
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT
	case errors.As(err, &application):
		return application.Type() == protocol.ErrTypeUnderWay
	}
	return false
}

// mayAdopt reports whether the record is asked for a run that goes on.
func mayAdopt(ctx workflow.Context, failure error) bool {
	return unseen(failure) && workflow.GetVersion(ctx, adoption, workflow.DefaultVersion, 1) >= 1
}

// await waits until the adopted run has ended well. Errors other than errGoesOn mean that
// it has not, and must be assessed.
func (j *job) await(ctx workflow.Context) error {
	run := j.in.Adopt
	j.status.Run, j.status.Collector = run.Run, run.Collector
	if err := j.enter(ctx, protocol.JobBenchmarking, run.Text()); err != nil {
		return err
	}
	ask := protocol.AwaitInput{Project: j.in.Project, Run: run.Run}
	var seen protocol.AwaitResult
	if err := call(ctx, awaitRunActivity(), protocol.AwaitRun, ask, &seen); err != nil {
		return err
	}
	if seen.Sight == protocol.RunDoubtful {
		// The API or the record may have been away as well.
		if err := workflow.NewTimerWithOptions(ctx, doubtPause, workflow.TimerOptions{Summary: "time for the collector's next heartbeats"}).Get(ctx, nil); err != nil {
			return err
		}
		ask.Doubted = true
		if err := call(ctx, awaitRunActivity(), protocol.AwaitRun, ask, &seen); err != nil {
			return err
		}
	}
	switch {
	case seen.Sight == protocol.RunGoesOn:
		return errGoesOn
	case seen.Sight == protocol.RunEnded && seen.Outcome == bench.RunSuccess:
		return nil
	}
	return temporal.NewApplicationError(seen.Message, protocol.ErrTypeInfrastructure)
}
