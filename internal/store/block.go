package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// StoreBlock records a run's results for some test cases, all or nothing. A result is
// accepted if its test case has none yet for the same artifact, size class, hardware,
// co-location and generation; this includes late results of runs given up as lost.
// Otherwise it is superseded, as is every result of a job that has ended. Sending a block
// again changes nothing and returns the same receipt.
//
// A job that measures in turns needs both sides of a test case in the same block. With
// one side only, the result counts as superseded and both sides are measured again.
//
// StoreBlock returns ErrConflict if a test case or an artifact does not belong to the
// job, or a test case has neither collections nor a reason for leaving it out.
func (s *Store) StoreBlock(ctx context.Context, run bench.RunID, results []bench.TestCaseResult, errs []bench.RunError) (bench.BlockReceipt, error) {
	var receipt bench.BlockReceipt
	err := s.inTx(ctx, "storing results of run "+string(run), func(tx pgx.Tx) error {
		r, job, err := lockRun(ctx, tx, run)
		if err != nil {
			return err
		}
		receipt, err = block{tx: tx, run: r, job: job}.store(ctx, results, errs)
		return err
	})
	if err != nil {
		return bench.BlockReceipt{}, err
	}
	return receipt, nil
}

// block is an upload in progress.
type block struct {
	tx  pgx.Tx
	run bench.Run
	job bench.Job
	// ids maps the job's test cases to their IDs.
	ids map[bench.TestCase]int64
	// sides maps the tags that results carry to the IDs of the artifacts measured.
	sides map[string]int64
}

// spot identifies a result within a run by test case and artifact.
type spot struct{ TestCaseID, ArtifactID int64 }

// store stores the results and errors of a locked run.
func (b block) store(ctx context.Context, results []bench.TestCaseResult, errs []bench.RunError) (receipt bench.BlockReceipt, err error) {
	if b.ids, err = testCaseIDs(ctx, b.tx, b.job.ID); err != nil {
		return receipt, err
	}
	if b.sides, err = sidesOf(ctx, b.tx, b.job); err != nil {
		return receipt, err
	}
	if err := b.check(results, errs); err != nil {
		return receipt, err
	}
	if b.job.Status.Open() {
		if err := b.storeResults(ctx, results); err != nil {
			return receipt, err
		}
		if err := b.storeErrors(ctx, errs); err != nil {
			return receipt, err
		}
	}
	return b.receipt(ctx, results)
}

func (b block) spot(r bench.TestCaseResult) spot { return spot{b.ids[r.TestCase], b.sides[r.Tag]} }

func testCaseIDs(ctx context.Context, tx pgx.Tx, jobID int64) (map[bench.TestCase]int64, error) {
	type row struct {
		ID int64
		bench.TestCase
	}
	rows, err := all[row](ctx, tx, `
		select tc.id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
		from job_test_case jt join test_case tc on tc.id = jt.test_case_id where jt.job_id = $1`, jobID)
	ids := make(map[bench.TestCase]int64, len(rows))
	for _, r := range rows {
		ids[r.TestCase] = r.ID
	}
	return ids, err
}

func (b block) check(results []bench.TestCaseResult, errs []bench.RunError) error {
	if b.job.Kind == bench.KindProfile && len(results) > 0 {
		return fmt.Errorf("%w: job %s profiles, so it has no results; upload its profile", ErrConflict, b.job.Key)
	}
	for _, r := range results {
		if _, ok := b.ids[r.TestCase]; !ok {
			return fmt.Errorf("%w: %s is not a test case of job %s", ErrConflict, r.TestCase, b.job.Key)
		}
		if _, ok := b.sides[r.Tag]; !ok {
			return fmt.Errorf("%w: job %s does not measure artifact %q", ErrConflict, b.job.Key, r.Tag)
		}
		if (len(r.Collections) == 0) != (r.Skipped != "") {
			return fmt.Errorf("%w: %s needs either collections or a reason for leaving it out", ErrConflict, r.TestCase)
		}
		for _, c := range r.Collections {
			if b.job.Iterations > 0 && c.Iteration > b.job.Iterations {
				return fmt.Errorf("%w: job %s measures %d iterations of %s, not iteration %d", ErrConflict, b.job.Key, b.job.Iterations, r.TestCase, c.Iteration)
			}
		}
	}
	for _, e := range errs {
		if e.TestCase == nil {
			continue
		}
		if _, ok := b.ids[*e.TestCase]; !ok {
			return fmt.Errorf("%w: %s is not a test case of job %s", ErrConflict, e.TestCase, b.job.Key)
		}
	}
	return nil
}

// storeResults writes the accepted results and their collections.
func (b block) storeResults(ctx context.Context, results []bench.TestCaseResult) error {
	bySpot := make(map[spot]bench.TestCaseResult, len(results))
	var cases, artifacts []int64
	var statuses, messages, causes []string
	var disturbed []int
	var sessions []bool
	var iterations []int
	var first, last []*time.Time
	for _, r := range b.whole(results) {
		at := b.spot(r)
		if _, twice := bySpot[at]; twice {
			continue // the first one counts
		}
		bySpot[at] = r
		cases, artifacts = append(cases, at.TestCaseID), append(artifacts, at.ArtifactID)
		status := "ok"
		if r.Skipped != "" {
			status = "skipped"
		}
		statuses, messages = append(statuses, status), append(messages, cleanText(r.Skipped))
		marked, cause := disturbances(r.Collections)
		disturbed, causes = append(disturbed, marked), append(causes, cause)
		sessions = append(sessions, bench.SessionDisturbed(marked, len(r.Collections)))
		from, to := collectedWithin(r.Collections)
		iterations, first, last = append(iterations, len(r.Collections)), append(first, from), append(last, to)
	}
	type row struct {
		ID int64
		spot
	}
	accepted, err := all[row](ctx, b.tx, `
		insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, probe, in_turns, run_id, status, message,
			disturbed, disturbed_by, disturbed_session, iterations, first_collected_at, last_collected_at)
		select t.artifact_id, t.test_case_id, n.size_class, n.hardware_id, n.co_located, n.generation, n.probe, j.versus is not null, n.id, t.status, t.message,
			t.disturbed, t.cause, t.session, t.iterations, t.first, t.last
		from job_run n join job_queue j on j.id = n.job_id,
			unnest(@cases::bigint[], @statuses::text[], @messages::text[], @artifacts::bigint[], @disturbed::integer[], @causes::text[], @sessions::boolean[],
				@iterations::integer[], @first::timestamptz[], @last::timestamptz[])
				as t (test_case_id, status, message, artifact_id, disturbed, cause, session, iterations, first, last)
		where n.id = @run
			-- one that was found invalid does not come back
			and not exists (select from test_result mine
				where mine.run_id = n.id and mine.test_case_id = t.test_case_id and mine.artifact_id = t.artifact_id)
		order by t.test_case_id, t.artifact_id -- so that two blocks never wait for each other
		on conflict (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, probe) where invalid_at is null do nothing
		returning id, test_case_id, artifact_id`,
		pgx.NamedArgs{
			"run": b.run.ID, "cases": cases, "statuses": statuses, "messages": messages, "artifacts": artifacts,
			"disturbed": disturbed, "causes": causes, "sessions": sessions, "iterations": iterations, "first": first, "last": last,
		})
	if err != nil {
		return err
	}
	var taken collections
	for _, a := range accepted {
		taken.add(a.ID, a.spot, bySpot[a.spot].Collections)
	}
	return taken.store(ctx, b)
}

// collectedWithin returns when the first and the last of some collections were taken; nil: there
// are none.
func collectedWithin(found []bench.Collection) (first, last *time.Time) {
	for i := range found {
		at := &found[i].CollectedAt
		if first == nil || at.Before(*first) {
			first = at
		}
		if last == nil || at.After(*last) {
			last = at
		}
	}
	return first, last
}

// disturbances counts the disturbed collections of a session and returns their most
// frequent cause; of equally frequent ones the first by name.
func disturbances(found []bench.Collection) (n int, cause string) {
	counts := make(map[string]int)
	for _, c := range found {
		if c.Disturbed == "" {
			continue
		}
		n++
		main, _, _ := strings.Cut(cleanText(c.Disturbed), ":")
		counts[main]++
		if most := counts[cause]; counts[main] > most || counts[main] == most && main < cause {
			cause = main
		}
	}
	return n, cause
}

// collections holds collections and their statistics as parallel arrays.
type collections struct {
	results     []int64
	iterations  []int
	collectedAt []time.Time
	disturbed   []string
	facts       []string

	statistics []statistic
}

type statistic struct {
	testCase   int64
	artifact   int64
	metric     string
	collection int // index of its collection
	value      float64
}

func (c *collections) add(result int64, at spot, found []bench.Collection) {
	for _, f := range found {
		index := len(c.results)
		c.results = append(c.results, result)
		c.iterations = append(c.iterations, f.Iteration)
		c.collectedAt = append(c.collectedAt, f.CollectedAt)
		c.disturbed = append(c.disturbed, cleanText(f.Disturbed))
		c.facts = append(c.facts, document(f.Facts, "{}"))
		for metric, v := range f.Values {
			c.statistics = append(c.statistics, statistic{at.TestCaseID, at.ArtifactID, string(metric), index, v})
		}
	}
}

func (c *collections) store(ctx context.Context, b block) error {
	if len(c.results) == 0 {
		return nil
	}
	type row struct {
		ID, ResultID int64
		Iteration    int
	}
	rows, err := all[row](ctx, b.tx, `
		insert into collection (result_id, iteration, collected_at, disturbed, facts)
		select result_id, iteration, collected_at, disturbed, facts::jsonb
		from unnest(@results::bigint[], @iterations::integer[], @times::timestamptz[], @disturbed::text[], @facts::text[])
			as t (result_id, iteration, collected_at, disturbed, facts)
		returning id, result_id, iteration`,
		pgx.NamedArgs{"results": c.results, "iterations": c.iterations, "times": c.collectedAt, "disturbed": c.disturbed, "facts": c.facts})
	if err != nil {
		return err
	}
	type place struct {
		result    int64
		iteration int
	}
	ids := make(map[place]int64, len(rows))
	for _, r := range rows {
		ids[place{r.ResultID, r.Iteration}] = r.ID
	}
	series, err := c.series(ctx, b.tx)
	if err != nil {
		return err
	}
	table := "pstat"
	if b.job.Kind == bench.KindRuntime {
		table = "pstat_runtime"
	}
	_, err = b.tx.CopyFrom(ctx, pgx.Identifier{table}, []string{"series_id", "artifact_id", "collection_id", "value"},
		pgx.CopyFromSlice(len(c.statistics), func(i int) ([]any, error) {
			s := c.statistics[i]
			collection := ids[place{c.results[s.collection], c.iterations[s.collection]}]
			return []any{series[seriesKey{s.testCase, s.metric}], s.artifact, collection, s.value}, nil
		}))
	return err
}

type seriesKey struct {
	testCase int64
	metric   string
}

// series finds or creates the series of all statistics.
func (c *collections) series(ctx context.Context, tx pgx.Tx) (map[seriesKey]int64, error) {
	var keys []seriesKey
	for _, s := range c.statistics {
		keys = append(keys, seriesKey{s.testCase, s.metric})
	}
	// Sorted, so that two blocks never wait for each other's series.
	slices.SortFunc(keys, func(a, b seriesKey) int {
		return cmp.Or(cmp.Compare(a.testCase, b.testCase), cmp.Compare(a.metric, b.metric))
	})
	keys = slices.Compact(keys)
	var cases []int64
	var metrics []string
	for _, k := range keys {
		cases, metrics = append(cases, k.testCase), append(metrics, k.metric)
	}
	if _, err := tx.Exec(ctx, `
		insert into pstat_series (test_case_id, metric)
		select t.test_case_id, t.metric from unnest($1::bigint[], $2::text[]) with ordinality as t (test_case_id, metric, place)
		where not exists (select from pstat_series s where s.test_case_id = t.test_case_id and s.metric = t.metric)
		order by t.place
		on conflict (test_case_id, metric) do nothing`, cases, metrics); err != nil {
		return nil, err
	}
	type row struct {
		ID, TestCaseID int64
		Metric         string
	}
	rows, err := all[row](ctx, tx, `
		select s.id, s.test_case_id, s.metric from pstat_series s
		join unnest($1::bigint[], $2::text[]) as t (test_case_id, metric) on s.test_case_id = t.test_case_id and s.metric = t.metric`,
		cases, metrics)
	ids := make(map[seriesKey]int64, len(rows))
	for _, r := range rows {
		ids[seriesKey{r.TestCaseID, r.Metric}] = r.ID
	}
	if err == nil && len(ids) != len(keys) {
		err = errors.New("a series could not be created") // both statements see each other's rows: cannot happen
	}
	return ids, err
}

func (b block) storeErrors(ctx context.Context, errs []bench.RunError) error {
	for _, e := range errs {
		var testCase *int64
		words := "job"
		if e.TestCase != nil {
			id := b.ids[*e.TestCase]
			testCase, words = &id, e.TestCase.String()
		}
		if _, err := b.tx.Exec(ctx, `
			insert into error (run_id, test_case_id, context, kind, message, output_tail) values (@run, @case, @words, @kind, @message, @tail)
			on conflict (run_id, coalesce(test_case_id, 0)) do nothing`,
			pgx.NamedArgs{
				"run": b.run.ID, "case": testCase, "words": words, "kind": e.Kind, "message": cleanText(e.Message), "tail": cleanText(e.OutputTail),
			}); err != nil {
			return err
		}
	}
	return nil
}

// receipt counts the accepted and superseded results, by what is stored.
func (b block) receipt(ctx context.Context, results []bench.TestCaseResult) (bench.BlockReceipt, error) {
	seen := make(map[spot]bool)
	var cases, artifacts []int64
	for _, r := range results {
		if at := b.spot(r); !seen[at] {
			seen[at] = true
			cases, artifacts = append(cases, at.TestCaseID), append(artifacts, at.ArtifactID)
		}
	}
	mine, err := value[int](ctx, b.tx, `
		select count(*) from test_result r join unnest($2::bigint[], $3::bigint[]) as t (test_case_id, artifact_id)
			on t.test_case_id = r.test_case_id and t.artifact_id = r.artifact_id
		where r.run_id = $1`, b.run.ID, cases, artifacts)
	return bench.BlockReceipt{Accepted: mine, Superseded: len(cases) - mine}, err
}
