package workflows

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Request carries one benchmark request from its row to its outcome: it waits
// for its artifacts, its parent and admission, goes through its stages (see
// [bench.Stage]), decides what has changed, and completes.
//
// It reads its state from the record, so any run can begin anywhere: a reset or a
// continue-as-new carries over nothing but the request's ID.
func Request(ctx workflow.Context, in protocol.RequestInput) (protocol.RequestResult, error) {
	r, err := newRequest(ctx, in)
	if err != nil {
		return protocol.RequestResult{}, err
	}
	err = r.run(ctx)
	if errors.Is(err, errEnded) {
		err = r.over(ctx)
	}
	if temporal.IsCanceledError(err) || (err != nil && ctx.Err() != nil) {
		err = r.cancelled(ctx)
	}
	return r.result, err
}

type request struct {
	in     protocol.RequestInput
	ref    protocol.RequestRef
	facts  protocol.RequestFacts
	status protocol.RequestStatus
	result protocol.RequestResult
	// children counts the children that this run has started.
	children int
	// notices counts the artifacts-ready updates that have arrived.
	notices int
	// recheck is the time after which a limit of the request's graph passes; 0: there is none.
	recheck time.Duration
	// look describes the present look; empty: there is none.
	look string
	// freed reports that this run has freed the request's slot.
	freed bool
	// brief lets the record answer within the workflow's task, and joins updates of the search
	// attributes; attributes wait for the next update.
	brief      bool
	attributes []temporal.SearchAttributeUpdate
	parentDone workflow.ReceiveChannel
	admitted   workflow.ReceiveChannel
	handOut    workflow.ReceiveChannel
	jobEnded   workflow.ReceiveChannel
	log        log.Logger
}

func newRequest(ctx workflow.Context, in protocol.RequestInput) (*request, error) {
	r := &request{
		in:         in,
		ref:        protocol.RequestRef(in),
		status:     protocol.RequestStatus{Project: in.Project, ID: in.ID, Phase: protocol.RequestStarting},
		parentDone: workflow.GetSignalChannel(ctx, protocol.SignalParentCompleted),
		admitted:   workflow.GetSignalChannel(ctx, protocol.SignalAdmitted),
		handOut:    workflow.GetSignalChannel(ctx, protocol.SignalHandOut),
		jobEnded:   workflow.GetSignalChannel(ctx, protocol.SignalJobEnded),
		brief:      revision(ctx) >= briefRequests,
		log:        log.With(workflow.GetLogger(ctx), "project", in.Project, "request", in.ID),
	}
	if err := workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.RequestStatus, error) { return r.status, nil }); err != nil {
		return nil, err
	}
	return r, workflow.SetUpdateHandlerWithOptions(ctx, protocol.UpdateArtifactsReady, r.artifactsReady,
		workflow.UpdateHandlerOptions{Description: "the request's artifacts are ready; the row says which", Validator: validArtifacts})
}

func (r *request) run(ctx workflow.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	switch {
	case r.facts.End != nil:
		return r.over(ctx)
	case r.facts.JobsDone:
		return r.conclude(ctx, "")
	}
	for _, await := range []func(workflow.Context) error{r.awaitArtifacts, r.awaitParent, r.awaitAdmission} {
		if err := await(ctx); err != nil {
			return err
		}
	}
	failed := ""
	for _, stage := range r.facts.Stages {
		var err error
		if failed, err = r.runStage(ctx, stage); err != nil {
			return err
		}
		if failed != "" {
			break
		}
	}
	return r.conclude(ctx, failed)
}

// conclude ends a request whose jobs have ended: its differences are decided, unless it
// failed before it had any results.
func (r *request) conclude(ctx workflow.Context, failed string) error {
	if failed == "" {
		if err := r.decide(ctx); err != nil {
			return err
		}
	}
	return r.complete(ctx, failed)
}

func (r *request) load(ctx workflow.Context) error {
	if err := r.readRow(ctx); err != nil {
		return err
	}
	attributes := []temporal.SearchAttributeUpdate{
		protocol.AttrProject.ValueSet(r.in.Project),
		protocol.AttrRequest.ValueSet(string(r.in.ID)),
		protocol.AttrUser.ValueSet(r.facts.User),
		protocol.AttrTarget.ValueSet(targetsText(r.facts.Targets)),
	}
	if r.facts.PR != 0 {
		attributes = append(attributes, protocol.AttrPR.ValueSet(int64(r.facts.PR)))
	}
	attributes = append(attributes, r.tagAttribute()...)
	if r.brief {
		r.attributes = attributes
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}

// tagAttribute sets the tag, once there is one.
func (r *request) tagAttribute() []temporal.SearchAttributeUpdate {
	if r.facts.Tag == "" {
		return nil
	}
	return []temporal.SearchAttributeUpdate{protocol.AttrTag.ValueSet(r.facts.Tag)}
}

func (r *request) readRow(ctx workflow.Context) error {
	// Into a new value: fields that the row no longer has must not stay.
	var facts protocol.RequestFacts
	if err := quick(ctx, recordActivity("read the request's row"), protocol.LoadRequest, r.ref, &facts); err != nil {
		return err
	}
	r.facts = facts
	if facts.Shared.Total > 0 {
		r.status.Shared = facts.Shared
	}
	return nil
}

func (r *request) complete(ctx workflow.Context, failed string) error {
	show := func() error {
		if r.status.Phase == protocol.RequestCompleting {
			return nil
		}
		return r.enter(ctx, protocol.RequestCompleting, "its jobs have ended; the outcome and the comparison are being recorded")
	}
	if err := r.jobsDone(ctx, show); err != nil {
		return err
	}
	var result protocol.CompleteResult
	if err := r.record(ctx, show, recordActivity("outcome and comparison with the baseline"), protocol.Complete, protocol.CompleteInput{Request: r.ref, Failed: failed}, &result); err != nil {
		return err
	}
	return r.ended(ctx, result)
}

// record lets the record do something, in a phase that is shown before. Since persons wait,
// their requests show the phase only if the record does not answer immediately.
func (r *request) record(ctx workflow.Context, show func() error, options workflow.ActivityOptions, name string, in, out any) error {
	if r.brief && !r.facts.Type.Tracked() {
		if done, err := atOnce(ctx, options, name, in, out); done {
			return err
		}
	}
	if err := show(); err != nil {
		return err
	}
	return call(ctx, options, name, in, out)
}

// over ends a request whose row ended before its workflow. The row decides: only
// optional jobs that are still open are started.
func (r *request) over(ctx workflow.Context) error { return r.ended(ctx, *r.facts.End) }

func (r *request) ended(ctx workflow.Context, how protocol.CompleteResult) error {
	if how.OptionalOpen > 0 {
		return r.optional(ctx, how.RequestResult)
	}
	return r.finished(ctx, how.RequestResult)
}

// optional waits for the optional jobs of a completed request: no request waits for
// them, but one has to start them.
func (r *request) optional(ctx workflow.Context, result protocol.RequestResult) error {
	r.result = result
	if err := r.enter(ctx, protocol.RequestOptionalJobs, "it has completed with outcome "+string(result.Outcome)+"; jobs of optional targets are still open"); err != nil {
		return err
	}
	if _, err := r.awaitJobs(ctx, protocol.ProgressInput{Request: r.ref, Optional: true}); err != nil {
		return err
	}
	return r.finished(ctx, result)
}

func (r *request) finished(ctx workflow.Context, result protocol.RequestResult) error {
	r.result = result
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	phase := protocol.RequestCompleted
	if result.Outcome == bench.Cancelled {
		phase = protocol.RequestCancelled
		drain(r.handOut) // the rows have ended; jobs that others wait for are handed to one of those
	}
	if err := r.readSignals(ctx); err != nil {
		return err
	}
	return r.enter(ctx, phase, "nothing: it ended with outcome "+string(result.Outcome))
}

// cancelled ends a request whose workflow was cancelled: first its rows, then its
// jobs that no other request waits for.
func (r *request) cancelled(ctx workflow.Context) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	cancel := protocol.CancelInput{Request: r.ref, Who: "temporal", Why: "its workflow was cancelled"}
	var result protocol.RequestResult
	if err := call(detached, recordActivity("cancel the rows, then the jobs"), protocol.CancelRequest, cancel, &result); err != nil {
		return err
	}
	if err := r.finished(detached, result); err != nil {
		return err
	}
	return temporal.NewCanceledError(r.result)
}

// readSignals reads the signals that have arrived before a run of the workflow ends:
// jobs that were handed out start; the others only say that the row has changed.
func (r *request) readSignals(ctx workflow.Context) error {
	for _, c := range []workflow.ReceiveChannel{r.parentDone, r.admitted, r.jobEnded} {
		drain(c)
	}
	_, err := r.startSignalled(ctx)
	return err
}

// enter moves to a phase and shows it.
func (r *request) enter(ctx workflow.Context, phase protocol.RequestPhase, waits string) error {
	r.status.Phase, r.status.Waits = phase, waits
	r.describe(ctx)
	r.log.Info("request enters phase", "phase", phase)
	attributes := append(slices.Clip(r.attributes), protocol.AttrState.ValueSet(string(phase)))
	r.attributes = nil
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}

func (r *request) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, requestDetails(workflow.GetInfo(ctx).Namespace, r.status, r.facts, r.result))
}

func targetsText(targets []bench.Target) string {
	if len(targets) == 0 {
		return "none"
	}
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}
