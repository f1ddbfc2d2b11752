package orchestration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// phase is the progress of a request's workflow: the same steps, in the same order,
// as workflows.Request takes.
type phase int

const (
	loading phase = iota
	awaitingArtifacts
	awaitingParent
	awaitingAdmission
	expanding
	running
	deciding
	looking
	completing
	optional
	over
)

// machine plays the workflow of a request.
type machine struct {
	ref       protocol.RequestRef
	kind      bench.RequestType
	phase     phase
	facts     protocol.RequestFacts
	stage     int
	failed    string
	cancelled bool // by a signal from outside
}

// over: nothing but optional jobs, for which nobody waits, is left to do.
func (m *machine) over() bool { return m.phase == over || m.phase == optional }

func (h *chronicle) machine(id bench.RequestID) *machine {
	i := slices.IndexFunc(h.machines, func(m *machine) bool { return m.ref.ID == id })
	if i < 0 {
		return &machine{phase: over} // purged
	}
	return h.machines[i]
}

// twice calls an activity, and at times calls it again: its answer was lost.
func twice[In, Out any](h *chronicle, activity func(context.Context, In) (Out, error), in In) (Out, error) {
	if h.fault(0.15) {
		if out, err := activity(h.ctx, in); err != nil {
			return out, err
		}
	}
	return activity(h.ctx, in)
}

func (h *chronicle) call(activity func(context.Context, protocol.RequestRef) error, ref protocol.RequestRef) {
	h.t.Helper()
	_, err := twice(h, func(ctx context.Context, ref protocol.RequestRef) (struct{}, error) {
		return struct{}{}, activity(ctx, ref)
	}, ref)
	h.ok(err)
}

// step takes the next step of a request's workflow. In a phase that waits, that
// is to look again.
func (h *chronicle) step(m *machine) {
	if m.phase == over {
		return
	}
	if m.cancelled {
		h.cancelled(m)
		return
	}
	switch m.phase {
	case loading:
		h.load(m)
		switch {
		case m.facts.End != nil && m.facts.End.OptionalOpen > 0:
			m.phase = optional
		case m.facts.End != nil:
			m.phase = over
		case m.facts.JobsDone:
			m.phase = deciding
		default:
			m.phase = awaitingArtifacts
		}
	case awaitingArtifacts, awaitingParent, awaitingAdmission:
		h.stepWaiting(m)
	case expanding:
		h.expand(m)
	case running:
		h.progress(m, protocol.ProgressInput{Request: m.ref, Stage: m.facts.Stages[m.stage]})
	case deciding:
		h.decide(m)
	case looking:
		h.progress(m, protocol.ProgressInput{Request: m.ref, Stage: bench.StageVerify})
	case optional:
		h.progress(m, protocol.ProgressInput{Request: m.ref, Optional: true})
	case completing:
		h.call(h.JobsDone, m.ref)
		out, err := twice(h, h.Complete, protocol.CompleteInput{Request: m.ref, Failed: m.failed})
		h.ok(err)
		h.note("%s has ended: %s, %s", m.ref.ID, out.Outcome, out.Message)
		if m.phase = over; out.OptionalOpen > 0 {
			m.phase = optional
		}
	}
}

func (h *chronicle) load(m *machine) {
	facts, err := twice(h, h.LoadRequest, m.ref)
	h.ok(err)
	m.facts = facts
}

func (h *chronicle) stepWaiting(m *machine) {
	f := m.facts
	switch {
	case m.phase == awaitingArtifacts && f.Status != bench.WaitingForArtifacts:
		m.phase = awaitingParent
		return
	case m.phase == awaitingParent && (f.WaitsFor == "" || f.ParentDone || f.Admitted):
		m.phase = awaitingAdmission
		return
	case m.phase == awaitingAdmission && (!f.Type.Tracked() || f.Admitted):
		m.phase = expanding
		return
	case m.phase == awaitingArtifacts:
		h.call(h.ExpireRequest, m.ref)
	case m.phase == awaitingAdmission:
		h.call(h.AskAdmission, m.ref)
	}
	h.load(m)
	switch {
	case m.facts.End == nil:
	case m.facts.End.Outcome == bench.Cancelled:
		h.cancelled(m)
	default:
		m.phase = over
	}
}

func (h *chronicle) expand(m *machine) {
	stage := m.facts.Stages[m.stage]
	out, err := twice(h, h.Expand, protocol.ExpandInput{Request: m.ref, Stage: stage})
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &application) && application.Type() == protocol.ErrTypePermanent:
		out.Failed = application.Message()
	default:
		h.ok(err)
	}
	h.note("%s writes its stage %s: %+v %s", m.ref.ID, stage, out.Counts, out.Failed)
	h.handedOut = append(h.handedOut, out.HandedOut...)
	if out.Failed != "" {
		m.failed, m.phase = out.Failed, completing
		return
	}
	if m.phase = running; out.Counts.Open == 0 {
		h.nextStage(m)
	}
}

func (h *chronicle) nextStage(m *machine) {
	m.phase = expanding
	if m.stage++; m.stage == len(m.facts.Stages) {
		m.phase = deciding
	}
}

// decide asks for the next look.
func (h *chronicle) decide(m *machine) {
	if !m.facts.Type.Tracked() {
		m.phase = completing
		return
	}
	h.call(h.JobsDone, m.ref)
	out, err := twice(h, h.NextLook, m.ref)
	h.ok(err)
	h.note("%s decides: look %d of %d rows in turns with %q, decided %v", m.ref.ID, out.Look, out.Rows, out.Baseline, out.Decided)
	h.handedOut = append(h.handedOut, out.HandedOut...)
	if m.phase = looking; out.Decided {
		m.phase = completing
	}
}

func (h *chronicle) progress(m *machine, ask protocol.ProgressInput) {
	out, err := twice(h, h.Progress, ask)
	h.ok(err)
	switch {
	case out.Cancelled && !ask.Optional:
		h.cancelled(m)
	case out.Counts.Open > 0:
	case ask.Optional:
		m.phase = over
	case ask.Stage == bench.StageVerify:
		m.phase = deciding
	default:
		h.nextStage(m)
	}
}

func (h *chronicle) cancelled(m *machine) {
	_, err := twice(h, h.CancelRequest, protocol.CancelInput{Request: m.ref, Who: "temporal", Why: "its workflow was cancelled"})
	h.ok(err)
	m.phase = over
}

// admit plays the queue.
func (h *chronicle) admit() {
	_, err := twice(h, h.Admit, protocol.QueueInput{Project: h.project})
	h.ok(err)
	h.checkSlots()
}

// jobFlow plays the workflow of a job, and the collector that has taken it.
type jobFlow struct {
	in        protocol.JobInput
	attempt   int32
	run       bench.RunID // empty: it waits for a collector
	missing   []bench.TestCase
	collector string
	cancelled bool
	ended     bool
}

func (h *chronicle) openJobs() []*jobFlow {
	h.startHandedOut()
	return slices.DeleteFunc(slices.Clone(h.jobs), func(j *jobFlow) bool { return j.ended })
}

// start starts the workflows of jobs, each once.
func (h *chronicle) start(in protocol.JobInput) {
	if !slices.ContainsFunc(h.jobs, func(j *jobFlow) bool { return j.in.Key == in.Key }) {
		h.note("job %s of %s is started: %s", in.Key, in.Request, in.Summary)
		h.jobs = append(h.jobs, &jobFlow{in: in})
	}
}

// stepJob lets some job go on: a collector takes it, or comes to an end with it.
func (h *chronicle) stepJob() {
	open := h.openJobs()
	if len(open) == 0 {
		return
	}
	j := open[h.rand.IntN(len(open))]
	switch {
	case j.cancelled:
		h.end(j, protocol.JobEndInput{Cancelled: true, GaveUp: "cancelled by ada"})
	case j.run == "":
		h.take(j)
	default:
		h.measure(j)
	}
}

func (h *chronicle) take(j *jobFlow) {
	var free []bench.Collector
	for _, c := range h.collectors {
		busy := slices.ContainsFunc(h.jobs, func(other *jobFlow) bool { return other.run != "" && other.collector == c.Name })
		if c.Target == j.in.Target && !busy && (c.Target != arm || !h.armDead) {
			free = append(free, c)
		}
	}
	if len(free) == 0 {
		return
	}
	c := free[h.rand.IntN(len(free))]
	j.attempt++
	start := store.RunStart{
		Run: bench.NewRunID(j.in.Key, "workflow", "activity", j.attempt), Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch,
		Dispatch: j.in.Dispatch, TaskQueue: j.in.TaskQueue,
	}
	plan, err := h.store.StartRun(h.ctx, start)
	if errors.Is(err, store.ErrJobClosed) || errors.Is(err, store.ErrNobodyWaits) {
		h.assess(j, bench.FailPermanent, err.Error())
		return
	}
	h.ok(err)
	h.note("%s takes job %s: %v", c.Name, j.in.Key, plan.Missing)
	j.run, j.missing, j.collector = plan.Run.ID, plan.Missing, c.Name
	h.checkStart(plan)
}

// measure ends a run: well, or not.
func (h *chronicle) measure(j *jobFlow) {
	var results []bench.TestCaseResult
	var failed []bench.TestCase
	dies := h.fault(0.15)
	job, err := h.store.Job(h.ctx, j.in.Key)
	h.ok(err)
	for _, tc := range j.missing {
		switch {
		case dies && h.chance(0.5):
		case h.isBroken(j.in.Tag, tc):
			failed = append(failed, tc)
		default:
			results = append(results, values(job, job.Tag, tc))
			if job.Versus != "" {
				results = append(results, values(job, job.Versus, tc))
			}
		}
	}
	receipt, err := h.store.StoreBlock(h.ctx, j.run, results, nil)
	h.ok(err)
	job, err = h.store.Job(h.ctx, j.in.Key)
	h.ok(err)
	if job.Status.Open() && job.Versus == "" && !strings.HasPrefix(job.Tag, "own-") { // people measure what they like
		h.equal(len(results), receipt.Accepted, "what is measured has no result yet")
		for _, r := range results {
			h.measured[job.Tag+" "+r.TestCase.String()] = true
		}
	}
	run := j.run
	j.run = ""
	switch {
	case dies:
		h.assess(j, bench.FailInfrastructure, "the collector was silent")
	case len(failed) > 0:
		h.ok(h.store.FinishRun(h.ctx, run, bench.RunEnd{Outcome: bench.RunFailure, Message: fmt.Sprint(failed, " exits with 1")}))
		h.assess(j, bench.FailJob, fmt.Sprint(failed, " exits with 1"))
	default:
		h.ok(h.store.FinishRun(h.ctx, run, bench.RunEnd{Outcome: bench.RunSuccess}))
		h.end(j, protocol.JobEndInput{})
	}
}

// values returns the results of an artifact's test case: every other artifact is slower.
func values(job bench.Job, tag string, tc bench.TestCase) bench.TestCaseResult {
	out := bench.TestCaseResult{TestCase: tc, Tag: tag}
	for i := range max(1, job.Iterations) {
		out.Collections = append(out.Collections, bench.Collection{
			Iteration: i + 1, Values: map[bench.Metric]float64{bench.WallTime: 1 + float64(tag[len(tag)-1]%2) + float64(i%5)/1000},
		})
	}
	return out
}

// isBroken tells whether a test case of an artifact fails each time.
func (h *chronicle) isBroken(tag string, tc bench.TestCase) bool {
	key := tag + " " + tc.String()
	broken, known := h.broken[key]
	if !known {
		broken = h.chance(0.1)
		h.broken[key] = broken
	}
	return broken
}

func (h *chronicle) assess(j *jobFlow, kind bench.FailureKind, message string) {
	out, err := twice(h, h.AssessJob, protocol.AssessInput{Project: h.project, Key: j.in.Key, Kind: kind, Message: message, Dispatch: j.in.Dispatch})
	h.ok(err)
	if !out.Again {
		h.end(j, protocol.JobEndInput{GaveUp: out.GaveUp})
		return
	}
	j.in.Dispatch = out.Dispatch
	if out.Moved.TaskQueue != "" {
		j.in.TaskQueue = out.Moved.TaskQueue
	}
}

func (h *chronicle) end(j *jobFlow, in protocol.JobEndInput) {
	in.Project, in.Key, in.TaskQueue = h.project, j.in.Key, j.in.TaskQueue
	j.ended, j.run = true, ""
	var waiting []string
	if in.Cancelled {
		waiting = h.column(`
			select j.key || ' ' || r.id from job_queue j join request_job w on w.job_id = j.id join benchmark_request r on r.id = w.request_id
			where j.key = $1 and j.status in ('queued', 'handed_out', 'in_progress') and r.status = 'in_progress'`, j.in.Key)
	}
	out, err := twice(h, h.RecordJobEnd, in)
	h.ok(err)
	h.waived = append(h.waived, waiting...)
	h.note("job %s has ended: %s %s", j.in.Key, out.Status, out.Message)
}

// handOutTo hands out, and starts as the reconciliation does what got lost at a
// hand-out.
func (h *chronicle) handOutTo(c bench.Collector) {
	queue := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}.TaskQueue()
	_, err := h.store.HandOut(h.ctx, queue, store.HandOutOptions{Depth: func(int) int { return 4 }})
	h.ok(err)
	inFlight, err := h.store.InFlight(h.ctx, 0)
	h.ok(err)
	for _, out := range inFlight {
		if out.Project == h.project && out.Request != "" {
			h.start(protocol.JobInput{
				Project: out.Project, Key: out.Job, Request: out.Request, Tag: out.Tag, Target: out.Target, TaskQueue: out.TaskQueue, Summary: out.Summary, Dispatch: out.Dispatch,
			})
		}
	}
}

// What activities tell workflows. What is lost is read from the record later.

func (h *chronicle) StartRequest(context.Context, bench.RequestRef) error { return nil }

func (h *chronicle) QueueChanged(context.Context, string) error { return nil }

func (h *chronicle) Admitted(_ context.Context, request bench.RequestRef) error {
	h.nudge(request.ID)
	return nil
}

// StartJob is called for several queues at a time.
func (h *chronicle) StartJob(_ context.Context, in protocol.JobInput) error {
	h.starting.Lock()
	defer h.starting.Unlock()
	h.handedOut = append(h.handedOut, in)
	return nil
}

// HandOut is called for several queues at a time, too.
func (h *chronicle) HandOut(_ context.Context, _ bench.RequestRef, jobs protocol.HandOut) error {
	h.starting.Lock()
	defer h.starting.Unlock()
	h.handedOut = append(h.handedOut, jobs.Jobs...)
	return nil
}

// startHandedOut starts what was handed out, in an order that is the same each time.
func (h *chronicle) startHandedOut() {
	slices.SortStableFunc(h.handedOut, func(a, b protocol.JobInput) int {
		return cmp.Or(cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.TaskQueue, b.TaskQueue))
	})
	for _, in := range h.handedOut {
		if !h.fault(0.2) {
			h.start(in)
		}
	}
	h.handedOut = nil
}

func (h *chronicle) SetLevel(context.Context, bench.JobRef, int) (bool, error) {
	return !h.fault(0.2), nil
}

func (h *chronicle) JobEnded(context.Context, bench.RequestRef, protocol.JobEnded) error {
	return nil
}

func (h *chronicle) ParentCompleted(_ context.Context, request bench.RequestRef) error {
	h.nudge(request.ID)
	return nil
}

func (h *chronicle) CancelJob(_ context.Context, job bench.JobRef) error {
	for _, j := range h.jobs {
		if j.in.Key == job.Key && !h.fault(0.2) {
			j.cancelled = true
		}
	}
	return nil
}

// nudge makes a request's workflow look at its row, unless the message is lost.
func (h *chronicle) nudge(id bench.RequestID) {
	m := h.machine(id)
	if m.phase >= awaitingArtifacts && m.phase <= awaitingAdmission && !h.fault(0.2) {
		h.load(m)
	}
}
