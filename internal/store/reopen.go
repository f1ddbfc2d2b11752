package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
)

// ErrNothingToMeasure reports that everything to be measured again has its results.
var ErrNothingToMeasure = errors.New("everything to be measured has a result")

// MaxTimes bounds how often one call runs a job.
const MaxTimes = 100

// BudgetError reports a reopening that would take more machine time than the call
// allows.
type BudgetError struct{ Takes, Budget time.Duration }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("it would take %s of machine time, as it took last, and the call allows %s", e.Takes.Round(time.Second), e.Budget)
}

// ReopenOptions selects the part of a request that is measured again. Jobs never change:
// new jobs of the next generation replace the former ones in the request, or the former
// ones run again for results of the next generation. Former results stay.
type ReopenOptions struct {
	// Job selects one job; empty: all jobs of the request.
	Job bench.JobKey
	// Remeasure includes test cases that have results, of these benchmarks or, if none
	// are given, of all; otherwise only test cases without a result are measured.
	Remeasure  bool
	Benchmarks []string
	// Retrigger chooses jobs by the request's graphs, to be measured again as a whole; nil: Job
	// and Remeasure choose. With [graphset.Choice.Rerun] no job is replaced: the jobs run again.
	Retrigger *graphset.Choice
	// Present describes how the project measures now; nil: as before.
	Present *Present
	// Queue takes the request's jobs that are written later.
	Queue string
	// Times counts the runs of each chosen job of a Retrigger, 1 to [MaxTimes], one after the
	// other; 0: once.
	Times int
	// Budget bounds the machine time of a Retrigger, by what its jobs took last; 0: no bound.
	Budget time.Duration
}

// Present describes how a project measures now. Its functions are called in a transaction
// and must not call the store.
type Present struct {
	// SuiteHash is the content hash of the suite.
	SuiteHash string
	// Has reports whether the suite has a test case.
	Has func(bench.TestCase) bool
	// Builds reports whether the project still builds an artifact the way this build job did.
	Builds func(bench.Job) bool
}

func (o ReopenOptions) action() string {
	if o.reruns() {
		return "rerun"
	}
	return "retrigger"
}

func (o ReopenOptions) graphReason() bench.GraphReason {
	switch {
	case o.Retrigger != nil:
		return bench.GraphRetrigger
	case o.Remeasure:
		return bench.GraphRemeasure
	}
	return bench.GraphRetry
}

// reruns reports whether jobs run again as themselves.
func (o ReopenOptions) reruns() bool { return o.Retrigger != nil && o.Retrigger.Rerun }

// again returns how many times chosen jobs run after the first.
func (o ReopenOptions) again() int { return max(o.Times, 1) - 1 }

// some reports whether only certain jobs are replaced; the request may then be open.
func (o ReopenOptions) some() bool { return o.Job != "" || o.Retrigger != nil }

// detail returns the options as the audit keeps them.
func (o ReopenOptions) detail() json.RawMessage {
	switch {
	case o.Retrigger != nil:
		d := map[string]any{"downstream": cmp.Or(o.Retrigger.Downstream, graphset.DownstreamNone)}
		if o.Retrigger.Number > 0 {
			d["graph"] = o.Retrigger.Number
		}
		if len(o.Retrigger.Jobs) > 0 {
			d["jobs"] = o.Retrigger.Jobs
		}
		if !o.Retrigger.Select.Empty() {
			d["select"] = o.Retrigger.Select.String()
		}
		if o.Times > 1 {
			d["times"] = o.Times
		}
		return detail(d)
	case len(o.Benchmarks) > 0:
		return detail(map[string][]string{"benchmarks": o.Benchmarks})
	case !o.Remeasure:
		return detail(map[string]bool{"lacking": true})
	}
	return nil
}

// Reopen opens a request that has ended, so that it is admitted once more, and writes the
// jobs to be measured again. If it never had any jobs, they are written after its
// admission. Single jobs may also be retried, and retriggered, while their request is open.
// The caller starts the request's workflow after the former one has ended.
//
// If a tracked request lacks results of a suite other than the present one, their jobs are
// dropped instead of rewritten, and planned from the present suite when it is the
// request's turn. So are builds that the project now makes in another way. Otherwise the
// new jobs use the present suite for their test cases that it has, and the former suite if
// it has none.
//
// It returns ErrConflict if the request or the job has not ended; ErrNothingToMeasure if
// everything has a result, or no test case has the named benchmarks; ErrNotFound if the
// job does not belong to the request, or the request has no graph; a
// [fairshare.TooManyWaiting] or [fairshare.TooEarly] if account limits forbid it; and the
// errors of [graphset.Set.Repeat], and a [BudgetError].
func (s *Store) Reopen(ctx context.Context, id bench.RequestID, options ReopenOptions, act Act) (Operation, error) {
	what, err := s.onRequest(ctx, options.action(), id)
	if err != nil {
		return Operation{}, err
	}
	if options.Job != "" {
		what.Subject = string(options.Job)
	}
	what.Detail = options.detail()
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		if err := lockJobWriting(ctx, tx, what.Project); err != nil {
			return OperationResult{}, err
		}
		r, err := lockRequest(ctx, tx, id)
		if err != nil {
			return OperationResult{}, err
		}
		return reopening{tx: tx, request: r, options: options, who: act.Who, written: make(map[fairshare.Job]int), sets: make(placeSets), replaced: make(map[int64]int64)}.run(ctx, act)
	})
}

// JobRequest returns the request to which a retry of a job belongs: an open one that waits
// for the job, else the one whose artifact the job measures, else the last one that waited.
// It returns ErrNotFound if there is no such job, or it was replaced in all its requests.
func (s *Store) JobRequest(ctx context.Context, key bench.JobKey) (bench.Request, error) {
	r, err := one[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from benchmark_request r
		join request_job rj on rj.request_id = r.id join job_queue j on j.id = rj.job_id
		where j.key = $1 and not rj.superseded
		order by r.status <> 'completed' desc, r.tag is not distinct from j.tag desc, r.created_at desc, r.id limit 1`, key)
	return r, wrap("looking the request of job "+string(key)+" up", err)
}

// reopening is a locked request that is being reopened.
type reopening struct {
	tx      pgx.Tx
	request bench.Request
	options ReopenOptions
	// written counts the written jobs by queue, submitter and branch.
	written map[fairshare.Job]int
	sets    placeSets // of these jobs
	// replaced maps each written job to the job that it replaces.
	replaced map[int64]int64
	who      string // account that asked for it
	// again holds the retriggered jobs; nil: this is no retrigger.
	again map[bench.JobKey]graphset.Again
}

// lackingJob is a job that has ended, with the test cases that are measured again.
type lackingJob struct {
	bench.Job
	cases []bench.TestCase
}

func (o reopening) run(ctx context.Context, act Act) (OperationResult, error) {
	ended := o.request.Status == bench.Completed
	switch {
	case o.options.Times < 0 || o.options.Times > MaxTimes || o.options.Times > 1 && o.options.Retrigger == nil:
		return OperationResult{}, fmt.Errorf("%w: times is %d; use 1 to %d", bench.ErrInvalid, o.options.Times, MaxTimes)
	case !ended && !o.options.some():
		return OperationResult{}, fmt.Errorf("%w: it has not ended: it is %s", ErrConflict, o.request.Status)
	case !ended && o.request.JobsDoneAt != nil:
		return OperationResult{}, fmt.Errorf("%w: the jobs of request %s have ended and its differences are being decided; wait for its end, or cancel it first", ErrConflict, o.request.ID)
	}
	result := OperationResult{Changed: true, Requests: []bench.RequestID{o.request.ID}}
	var repetition graphset.Repetition
	if o.options.Retrigger != nil {
		var err error
		if repetition, err = o.repetition(ctx); err != nil {
			return result, err
		}
		o.again = chosen(repetition)
	}
	former, err := o.jobs(ctx)
	if err != nil {
		return result, err
	}
	open, dropped := 0, 0
	var lacking []lackingJob
	var again []bench.Job
	var commands []bench.Job
	for _, j := range former {
		if j.Status.Open() {
			open++ // it still waits, for a collector or for a request
			continue
		}
		if o.options.reruns() {
			if len(j.TestCases) > 0 || j.Build != nil { // excludes a chunk that others have measured
				again = append(again, j.Job)
			}
			continue
		}
		if j.Kind == bench.KindCommand { // decided without a query, as there may be thousands
			if o.lacks(j) {
				commands = append(commands, j.Job)
				continue
			} else if o.options.Remeasure || j.Superseded || j.Status == bench.JobSuccess {
				continue
			}
		}
		cases, err := o.cases(ctx, j.Job)
		if err != nil {
			return result, err
		}
		if len(cases) == 0 && (o.again == nil || j.Build == nil) && (o.options.Remeasure || j.Superseded || j.Status == bench.JobSuccess) {
			continue
		}
		lacking = append(lacking, lackingJob{j.Job, cases})
	}
	replans := o.replans(lacking)
	for _, j := range lacking {
		stored, err := o.stored(ctx, j.Job)
		if err != nil {
			return result, err
		}
		if replans && j.SuiteHash != "" || o.builtOtherwise(j.Job) || stored {
			dropped++
			if err := o.drop(ctx, j.Job); err != nil {
				return result, err
			}
			continue
		}
		cases, err := o.replace(ctx, j.Job, j.cases)
		if err != nil {
			return result, err
		}
		result.Jobs, result.TestCases = result.Jobs+1, result.TestCases+cases
	}
	if err := o.replaceCommands(ctx, commands); err != nil {
		return result, err
	}
	repeat := o.replaceServices
	if o.options.reruns() {
		repeat = func(ctx context.Context) (int, error) { return o.rerun(ctx, again) }
		for _, j := range again { // as a preview tells
			lacking = append(lacking, lackingJob{j, j.TestCases})
			result.Jobs, result.TestCases = result.Jobs+1, result.TestCases+len(j.TestCases)
		}
	}
	services, err := repeat(ctx)
	if err != nil {
		return result, err
	}
	result.Jobs += services
	if err := writeReplacements(ctx, o.tx, o.options.graphReason(), o.replaced); err != nil {
		return result, err
	}
	if err := o.sets.record(ctx, o.tx); err != nil {
		return result, err
	}
	if err := countWaiting(ctx, o.tx, len(commands)); err != nil {
		return result, err
	}
	result.Jobs, result.TestCases = result.Jobs+len(commands), result.TestCases+len(commands)
	if act.DryRun || o.options.Budget > 0 {
		preview, takes, err := o.preview(ctx, lacking, commands)
		if err != nil {
			return result, err
		}
		if o.options.Budget > 0 && takes > o.options.Budget {
			return result, &BudgetError{Takes: takes, Budget: o.options.Budget}
		}
		if act.DryRun {
			result.Preview = preview
		}
	}
	switch {
	case o.options.some() && open > 0:
		return result, fmt.Errorf("%w: the job has not ended", ErrConflict)
	case result.Jobs+open+dropped == 0 && (o.options.Remeasure || o.options.some() || o.request.ExpandedAt != nil):
		return result, ErrNothingToMeasure
	}
	switch result.Message = fmt.Sprintf("%s, %s", count(result.Jobs, "job"), count(result.TestCases, "test case")); {
	case replans:
		result.Message = "its jobs are planned from the present suite when it is its turn"
		o.request.ExpandedAt = nil
	case len(former) == 0 || dropped > 0:
		result.Message = "its jobs are written when it is its turn"
	case o.again != nil:
		if o.options.Times > 1 {
			result.Message += fmt.Sprintf(", %d times each", o.options.Times)
		}
		result.Message += also(repetition)
		if !act.DryRun && !o.options.reruns() {
			if result.Graph, err = o.newestGraph(ctx); err != nil {
				return result, err
			}
		}
	}
	if ended {
		if err := o.open(ctx, act); err != nil {
			return result, err
		}
	}
	return result, o.checkLimits(ctx, act.Who)
}

// checkLimits applies the limits of accounts: a retry may do no more than a submission.
func (o reopening) checkLimits(ctx context.Context, who string) error {
	asked, waiting := slices.Collect(maps.Keys(o.written)), make(map[string]int)
	for job, n := range o.written {
		waiting[job.Submitter] += n
	}
	if !o.options.some() && !o.request.Deferred { // all jobs of a deferred request are written
		asked = append(asked, fairshare.Job{Queue: cmp.Or(o.options.Queue, o.request.Queue), Submitter: o.request.Submitter, Branch: o.request.Branch})
		if o.request.ExpandedAt == nil {
			waiting[o.request.Submitter]++
		}
	}
	if err := mayAskFor(ctx, o.tx, who, asked); err != nil {
		return err
	}
	for _, account := range slices.Sorted(maps.Keys(waiting)) { // sorted, so that two calls never wait for each other
		if err := mayWait(ctx, o.tx, account, waiting[account]); err != nil {
			return err
		}
	}
	return nil
}

// replans reports whether the jobs are planned anew: some of a tracked request's own
// results are lacking because of a suite that is not the present one.
func (o reopening) replans(lacking []lackingJob) bool {
	if o.options.Present == nil || o.options.Remeasure || o.options.some() || !o.request.Type.Tracked() {
		return false
	}
	return slices.ContainsFunc(lacking, func(j lackingJob) bool {
		return j.Tag == o.request.Tag && j.SuiteHash != "" && j.SuiteHash != o.options.Present.SuiteHash
	})
}

// builtOtherwise reports whether a build job's artifact is built in another way now.
func (o reopening) builtOtherwise(j bench.Job) bool {
	return j.Build != nil && o.options.Present != nil && !o.options.some() && !o.options.Present.Builds(j)
}

// stored reports whether a build job's artifact is stored by now: another job has built it.
func (o reopening) stored(ctx context.Context, j bench.Job) (bool, error) {
	if j.Build == nil || o.options.some() {
		return false, nil
	}
	return value[bool](ctx, o.tx, `select exists (select from build where key = $1)`, j.Build.Key)
}

// drop removes a job from the request without a job in its place. Other requests keep it.
func (o reopening) drop(ctx context.Context, former bench.Job) error {
	_, err := o.tx.Exec(ctx, `update request_job set superseded = true, dropped = true where job_id = $1 and request_id = $2`, former.ID, o.request.ID)
	return err
}

// present returns the suite that measures test cases of a job now, with those that it has.
func (o reopening) present(former bench.Job, cases []bench.TestCase) (suite string, has []bench.TestCase) {
	if o.options.Present == nil || former.SuiteHash == "" {
		return former.SuiteHash, cases
	}
	for _, tc := range cases {
		if o.options.Present.Has(tc) {
			has = append(has, tc)
		}
	}
	if len(has) == 0 {
		return former.SuiteHash, cases
	}
	return o.options.Present.SuiteHash, has
}

// wrote counts a written job.
func (o reopening) wrote(j bench.Job) {
	o.written[fairshare.Job{Queue: j.Queue, Submitter: j.Submitter, Branch: j.Branch}]++
}

// count returns a number with its noun.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// linkedJob is a job of a request.
type linkedJob struct {
	bench.Job
	// Superseded reports that the job was replaced. It still counts for test cases that
	// no later job has.
	Superseded bool
}

// jobs lists the request's jobs, locked in the order of their IDs, as everywhere. Looks are
// left out: what is measured again is compared anew, with looks of its own.
func (o reopening) jobs(ctx context.Context) ([]linkedJob, error) {
	jobs, err := all[linkedJob](ctx, o.tx, `
		select `+jobColumns+`, rj.superseded from job_queue j join request_job rj on rj.job_id = j.id
		where rj.request_id = $1 and rj.stage <> 'verify' and (cardinality($2::text[]) = 0 or (j.key = any($2) and not rj.superseded))
		order by j.id for update of j`, o.request.ID, o.only())
	if err == nil && len(jobs) == 0 && o.options.Job != "" {
		return nil, fmt.Errorf("%w: job %s does not belong to request %s, was replaced by a later one, or has measured a suspicion in turns", ErrNotFound, o.options.Job, o.request.ID)
	}
	return jobs, err
}

// cases returns the test cases that are measured again in place of a job: those for which
// it is the request's latest job.
func (o reopening) cases(ctx context.Context, j bench.Job) ([]bench.TestCase, error) {
	if o.options.Remeasure && j.Tag != o.request.Tag {
		return nil, nil // a job of its parent: not part of the request's own results
	}
	again, whole := o.again[j.Key]
	return all[bench.TestCase](ctx, o.tx, `
		select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
		from job_test_case_state t join test_case tc on tc.id = t.test_case_id
		where t.job_id = $1 and ($2 or not t.done) and (t.done or not (select dropped from request_job where job_id = $1 and request_id = $4)) and (cardinality($3::text[]) = 0 or tc.benchmark = any($3))
			and $1 = (
				select l.id from request_job rj join job_queue l on l.id = rj.job_id
				join job_queue this on this.id = $1 and this.artifact_id = l.artifact_id
				join job_test_case lt on lt.job_id = l.id and lt.test_case_id = t.test_case_id
				where rj.request_id = $4 and rj.stage <> 'verify' order by rj.superseded, l.generation desc, l.id desc limit 1)
		group by tc.id, t.place -- once, though a job that measures in turns has them for both sides
		order by t.place`, j.ID, o.options.Remeasure || whole, append(append([]string{}, o.options.Benchmarks...), again.Benchmarks...), o.request.ID)
}

// replace puts a job of the next generation in a former one's place, for all open
// requests that wait for it, and returns the number of its test cases. A failed job whose
// test cases all have results by now is only removed.
func (o reopening) replace(ctx context.Context, former bench.Job, cases []bench.TestCase) (int, error) {
	next := bench.PlannedJob{Job: unstarted(former)}
	next.AskedBy, next.Again = o.who, o.options.again()
	next.SuiteHash, cases = o.present(former, cases)
	if len(cases) > 0 || len(former.TestCases) == 0 {
		next.TestCases = slices.Clone(cases)
		if former.Shape != "" && former.Command == nil {
			next.Shape = string(next.SuiteShape())
		}
		var err error
		if next.Job, err = nextGeneration(ctx, o.tx, o.request.ID, former.Key, next.Job); err != nil {
			return 0, err
		}
		if err := insertJob(ctx, o.tx, next, &o.sets); err != nil {
			return 0, fmt.Errorf("writing job %s in place of %s: %w", next.Key, former.Key, err)
		}
		o.wrote(next.Job)
		written, err := value[int64](ctx, o.tx, `select id from job_queue where key = $1`, next.Key)
		if err != nil {
			return 0, err
		}
		if _, err := o.tx.Exec(ctx, `
			insert into request_job (request_id, job_id, stage, optional)
			select old.request_id, $2, old.stage, old.optional
			from request_job old join benchmark_request r on r.id = old.request_id
			where old.job_id = $1 and (r.id = $3 or (not old.superseded and r.status <> 'completed'))
			on conflict (request_id, job_id) do nothing`, former.ID, written, o.request.ID); err != nil {
			return 0, err
		}
		o.replaced[written] = former.ID
	}
	_, err := o.tx.Exec(ctx, `
		update request_job old set superseded = true from benchmark_request r
		where old.job_id = $1 and r.id = old.request_id and (r.id = $2 or r.status <> 'completed')`, former.ID, o.request.ID)
	return len(cases), err
}

// unstarted returns an ended job in its state before hand-out.
func unstarted(former bench.Job) bench.Job {
	former.JobState = bench.JobState{Status: bench.JobQueued}
	former.AffinityUntil, former.MovedFrom, former.MovedAt = nil, "", nil
	return former
}

// nextGeneration returns the job that replaces a former one of its artifact. A build,
// which belongs to no single request, gets the generation that all requests for it find.
func nextGeneration(ctx context.Context, tx pgx.Tx, request bench.RequestID, former bench.JobKey, j bench.Job) (bench.Job, error) {
	var next int
	var err error
	if j.Build != nil {
		next, err = value[int](ctx, tx, `
			select max(generation) + 1 from job_queue where kind = 'build' and project = $1 and build ->> 'key' = $2`, j.Project, j.Build.Key)
	} else {
		next, err = laterGeneration(ctx, tx, former)
	}
	return plan.Later(j, request, next), err
}

// renewed returns a job in the generation that a request needs: a later one if jobs of
// its artifact were purged, or if the same job has succeeded but results of it were found
// invalid since.
func renewed(ctx context.Context, tx pgx.Tx, request bench.RequestID, j bench.Job) (bench.Job, error) {
	if j.Build != nil {
		return j, nil
	}
	first, err := value[int](ctx, tx, `select first_generation from artifact where project = $1 and tag = $2`, j.Project, j.Tag)
	if err == nil && j.Generation < first && j.Kind != bench.KindCommand {
		return plan.Later(j, request, first), nil
	} else if err != nil && !errors.Is(err, ErrNotFound) {
		return j, err
	}
	invalid, err := value[bool](ctx, tx, `
		select exists (
			select from job_queue j join job_test_case_state t on t.job_id = j.id
			where j.key = $1 and j.status = 'success' and not t.done)`, j.Key)
	if err != nil || !invalid {
		return j, err
	}
	return nextGeneration(ctx, tx, request, j.Key, j)
}

// open returns the request to its initial status.
func (o reopening) open(ctx context.Context, act Act) error {
	message := fmt.Sprintf("opened again by %s", act.Who)
	if act.Reason != "" {
		message += ": " + act.Reason
	}
	status := bench.ArtifactsReady
	switch r := o.request; {
	case r.Deferred, r.Template != nil:
		status = bench.InProgress // it needs no admission, and its jobs are written
	case r.Tag == "" && r.Command == nil:
		status = bench.WaitingForArtifacts
	}
	if err := supersedeComparison(ctx, o.tx, o.request.ID); err != nil {
		return err
	}
	_, err := o.tx.Exec(ctx, `
		update benchmark_request set status = $2, outcome = null, completed_at = null, jobs_done_at = null, admitted_at = null,
			workflow_started_at = null, reopened_at = now(), baseline = null, summary = null, message = $3,
			expanded_at = case when $4 then expanded_at end
		where id = $1`, o.request.ID, string(status), cleanText(strings.TrimSpace(message)), o.request.ExpandedAt != nil)
	return err
}
