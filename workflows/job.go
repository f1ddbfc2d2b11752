package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Job runs one job on the collectors of its task queue until the record says
// that it is done or has no attempt left.
//
// Each dispatch is one heartbeating RunJob activity. The record decides what its
// error means (AssessJob) and how the job has ended (RecordJobEnd). If the run goes on
// although the activity has failed, the record is asked for its end (AwaitRun).
func Job(ctx workflow.Context, in protocol.JobInput) (protocol.JobResult, error) {
	j, err := newJob(ctx, in)
	if err != nil {
		return protocol.JobResult{}, err
	}
	err = j.run(ctx)
	return j.result, err
}

type job struct {
	in      protocol.JobInput
	status  protocol.JobStatus
	result  protocol.JobResult
	reason  bench.RunReason
	started workflow.ReceiveChannel
	moved   workflow.ReceiveChannel
	log     log.Logger
	// brief omits what the server already shows, and records the end immediately.
	brief bool
}

func newJob(ctx workflow.Context, in protocol.JobInput) (*job, error) {
	j := &job{
		in:      in,
		status:  protocol.JobStatus{Project: in.Project, Key: in.Key, Phase: protocol.JobWaitsForCollector, TaskQueue: in.TaskQueue, Dispatches: in.Dispatches},
		reason:  bench.Scheduled,
		started: workflow.GetSignalChannel(ctx, protocol.SignalRunStarted),
		moved:   workflow.GetSignalChannel(ctx, protocol.SignalMoved),
		log:     log.With(workflow.GetLogger(ctx), "project", in.Project, "job", in.Key),
		brief:   revision(ctx) >= briefJobs,
	}
	if in.Dispatches > 0 {
		j.reason = bench.Retry
	}
	return j, workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.JobStatus, error) { return j.status, nil })
}

func (j *job) run(ctx workflow.Context) error {
	for {
		err := j.attempt(ctx)
		if err == nil {
			return j.recordEnd(ctx, protocol.JobEndInput{})
		}
		if ctx.Err() != nil {
			return j.cancelled(ctx)
		}
		if !errors.Is(err, errGoesOn) {
			again, gaveUp, err := j.assess(ctx, err)
			switch {
			case ctx.Err() != nil:
				return j.cancelled(ctx)
			case err != nil:
				return err
			case !again:
				return j.recordEnd(ctx, protocol.JobEndInput{GaveUp: gaveUp})
			}
		}
		if j.status.Dispatches-j.in.Dispatches >= maxDispatches || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			drain(j.started)
			j.followMoves()
			next := j.in
			next.Dispatches = j.status.Dispatches
			return workflow.NewContinueAsNewError(ctx, Job, next)
		}
	}
}

// attempt waits for the end of an adopted run, else of a new one.
func (j *job) attempt(ctx workflow.Context) error {
	if j.in.Adopt.Run != "" {
		return j.await(ctx)
	}
	return j.dispatch(ctx)
}

// dispatch gives the job to the collectors of its task queue and waits for the end of
// its run.
func (j *job) dispatch(ctx workflow.Context) error {
	j.followMoves()
	j.status.Dispatches++
	j.in.Priority.Again = j.status.Dispatches > 1 // goes first within its queue
	j.status.Run, j.status.Collector = "", ""
	if err := j.enter(ctx, protocol.JobWaitsForCollector, j.waitsForCollector()); err != nil {
		return err
	}
	input := protocol.RunJobInput{Project: j.in.Project, Key: j.in.Key, Reason: j.reason, Dispatch: j.in.Dispatch}
	run := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, runJobActivity(j.in, j.in.Attempts)), protocol.RunJob, input)
	selector := workflow.NewSelector(ctx)
	done := false
	selector.AddFuture(run, func(workflow.Future) { done = true })
	var shown error
	selector.AddReceive(j.started, func(c workflow.ReceiveChannel, _ bool) {
		var started protocol.RunStarted
		c.Receive(ctx, &started)
		j.status.Run, j.status.Collector = started.Run, started.Collector
		shown = j.enter(ctx, protocol.JobBenchmarking, fmt.Sprintf("run %d (`%s`) is being measured on collector `%s`", started.Number, started.Run, started.Collector))
	})
	selector.AddReceive(j.moved, func(workflow.ReceiveChannel, bool) {
		if j.followMoves() && j.status.Phase == protocol.JobWaitsForCollector {
			shown = j.enter(ctx, protocol.JobWaitsForCollector, j.waitsForCollector())
		}
	})
	for !done {
		selector.Select(ctx)
		if shown != nil {
			return shown
		}
	}
	return run.Get(ctx, nil)
}

// assess asks the record what to do about a failed dispatch, and pauses if told to.
func (j *job) assess(ctx workflow.Context, failure error) (again bool, gaveUp string, err error) {
	kind, message := protocol.FailureOf(failure)
	j.status.LastError = message
	j.log.Warn("run ended without success", "kind", kind, "error", message)
	var answer protocol.Assessment
	ask := protocol.AssessInput{Project: j.in.Project, Key: j.in.Key, Rerun: j.in.Rerun, Kind: kind, Message: message, Dispatch: j.in.Dispatch, Unbegun: j.in.Unbegun}
	ask.Awaited, j.in.Adopt = j.in.Adopt.Run, protocol.Adopted{}
	ask.Unseen = ask.Awaited == "" && mayAdopt(ctx, failure)
	if err := call(ctx, recordActivity("what the record says of the failed run"), protocol.AssessJob, ask, &answer); err != nil {
		return false, "", err
	}
	if answer.Adopt.Run != "" {
		j.in.Adopt = answer.Adopt
		return true, "", nil
	}
	if !answer.Again {
		return false, answer.GaveUp, nil
	}
	j.reason, j.in.Attempts, j.in.Unbegun = answer.Reason, answer.Attempts, answer.Unbegun
	if answer.Dispatch != "" { // an older orchestrator draws none: the present one holds
		j.in.Dispatch = answer.Dispatch
	}
	if answer.Level != 0 {
		j.in.Priority.Level = answer.Level
	}
	j.follow(answer.Moved)
	if answer.PauseSeconds > 0 {
		pause := time.Duration(answer.PauseSeconds) * time.Second
		if err := j.enter(ctx, protocol.JobPausing, fmt.Sprintf("pauses %s before the next try", pause)); err != nil {
			return false, "", err
		}
		if err := workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: "pause before the next try"}).Get(ctx, nil); err != nil {
			return false, "", err
		}
	}
	return true, "", nil
}

func (j *job) recordEnd(ctx workflow.Context, end protocol.JobEndInput) error {
	end.Project, end.Key, end.Rerun, end.TaskQueue = j.in.Project, j.in.Key, j.in.Rerun, j.in.TaskQueue
	result, err := j.tellEnd(ctx, end)
	if err != nil {
		return err
	}
	drain(j.started)
	drain(j.moved)
	if result.Run != "" { // which may have been too short to be announced
		j.status.Run, j.status.Collector = result.Run, result.Collector
	}
	j.status.LastError = result.Message
	j.result = protocol.JobResult{Status: result.Status, Message: result.Message, Run: j.status.Run, Dispatches: j.status.Dispatches}
	return j.enter(ctx, protocol.JobPhase(result.Status), "nothing: it ended with "+string(result.Status))
}

// tellEnd records the end immediately. If the record does not answer, a durable activity
// waits for it, and the phase says so.
func (j *job) tellEnd(ctx workflow.Context, end protocol.JobEndInput) (result protocol.JobEndResult, err error) {
	activity := recordActivity("end of the job, waking those who wait")
	if j.brief {
		if done, err := atOnce(ctx, activity, protocol.RecordJobEnd, end, &result); done {
			return result, err
		}
		result = protocol.JobEndResult{}
	}
	if err := j.enter(ctx, protocol.JobRecording, "its end is being recorded"); err != nil {
		return result, err
	}
	err = call(ctx, activity, protocol.RecordJobEnd, end, &result)
	return result, err
}

// cancelled ends a job whose workflow was cancelled. Its benchmark is dead by
// now: the workflow has waited for the activity.
func (j *job) cancelled(ctx workflow.Context) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	if err := j.recordEnd(detached, protocol.JobEndInput{Cancelled: true, GaveUp: "cancelled"}); err != nil {
		return err
	}
	return temporal.NewCanceledError(j.result)
}

func (j *job) enter(ctx workflow.Context, phase protocol.JobPhase, waits string) error {
	j.status.Phase, j.status.Waits = phase, waits
	workflow.SetCurrentDetails(ctx, jobDetails(j.in, j.status))
	if shown, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(protocol.AttrState); j.brief && shown == string(phase) {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(phase)))
}
