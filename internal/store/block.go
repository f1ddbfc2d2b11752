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
		b := block{tx: tx}
		if err := b.lock(ctx, run); err != nil {
			return err
		}
		if err := b.store(ctx, results, errs, &receipt); err != nil {
			return err
		}
		return tx.SendBatch(ctx, &b.last).Close()
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
	// last holds the statements on which nothing else depends. The caller sends them.
	last pgx.Batch
}

// spot identifies a result within a run by test case and artifact.
type spot struct{ TestCaseID, ArtifactID int64 }

// lock locks the run and its job, and reads the test cases and artifacts to which its
// results may belong.
func (b *block) lock(ctx context.Context, id bench.RunID) error {
	type row struct {
		ID int64
		bench.TestCase
	}
	var (
		ask       pgx.Batch
		cases     []row
		artifacts jobArtifacts
	)
	queueRun(&ask, &b.run, &b.job, id)
	queueAll(&ask, &cases, `
		select tc.id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
		from job_test_case jt join test_case tc on tc.id = jt.test_case_id where jt.job_id = (select id from job_queue where key = $1)`, id.Job())
	queueOne(&ask, &artifacts, artifactsOfJob, id.Job())
	if err := b.tx.SendBatch(ctx, &ask).Close(); err != nil {
		return err
	}
	b.ids = make(map[bench.TestCase]int64, len(cases))
	for _, c := range cases {
		b.ids[c.TestCase] = c.ID
	}
	b.sides = artifacts.sides(b.job)
	return nil
}

// store stores the results and errors of a locked run, together with what it adds to b.last.
func (b *block) store(ctx context.Context, results []bench.TestCaseResult, errs []bench.RunError, receipt *bench.BlockReceipt) error {
	if err := b.check(results, errs); err != nil {
		return err
	}
	if b.job.Status.Open() {
		if err := b.storeResults(ctx, results); err != nil {
			return err
		}
		b.storeErrors(errs)
	}
	b.count(results, receipt)
	return nil
}

func (b *block) spot(r bench.TestCaseResult) spot { return spot{b.ids[r.TestCase], b.sides[r.Tag]} }

func (b *block) check(results []bench.TestCaseResult, errs []bench.RunError) error {
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
func (b *block) storeResults(ctx context.Context, results []bench.TestCaseResult) error {
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

// fewStatistics is the number of rows up to which one statement among others is quicker than a copy.
const fewStatistics = 100

func (c *collections) store(ctx context.Context, b *block) error {
	if len(c.results) == 0 {
		return nil
	}
	type row struct {
		ID, ResultID int64
		Iteration    int
	}
	var rows []row
	var ask pgx.Batch
	queueAll(&ask, &rows, `
		insert into collection (result_id, iteration, collected_at, disturbed, facts)
		select result_id, iteration, collected_at, disturbed, facts::jsonb
		from unnest(@results::bigint[], @iterations::integer[], @times::timestamptz[], @disturbed::text[], @facts::text[])
			as t (result_id, iteration, collected_at, disturbed, facts)
		returning id, result_id, iteration`,
		pgx.NamedArgs{"results": c.results, "iterations": c.iterations, "times": c.collectedAt, "disturbed": c.disturbed, "facts": c.facts})
	series := c.series(&ask)
	if err := b.tx.SendBatch(ctx, &ask).Close(); err != nil {
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
	table := "pstat"
	if b.job.Kind == bench.KindRuntime {
		table = "pstat_runtime"
	}
	n := len(c.statistics)
	inSeries, artifacts, collected, values := make([]int64, n), make([]int64, n), make([]int64, n), make([]float64, n)
	for i, s := range c.statistics {
		var known bool
		if inSeries[i], known = series[seriesKey{s.testCase, s.metric}]; !known {
			return errors.New("a series could not be created") // both statements see each other's rows: cannot happen
		}
		artifacts[i], collected[i], values[i] = s.artifact, ids[place{c.results[s.collection], c.iterations[s.collection]}], s.value
	}
	if n <= fewStatistics {
		b.last.Queue(`
			insert into `+table+` (series_id, artifact_id, collection_id, value)
			select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::float8[])`, inSeries, artifacts, collected, values)
		return nil
	}
	_, err := b.tx.CopyFrom(ctx, pgx.Identifier{table}, []string{"series_id", "artifact_id", "collection_id", "value"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return []any{inSeries[i], artifacts[i], collected[i], values[i]}, nil
		}))
	return err
}

type seriesKey struct {
	testCase int64
	metric   string
}

// series adds to a batch the statements that find or create the series of all statistics. The
// map is filled once the batch has been sent.
func (c *collections) series(b *pgx.Batch) map[seriesKey]int64 {
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
	b.Queue(`
		insert into pstat_series (test_case_id, metric)
		select t.test_case_id, t.metric from unnest($1::bigint[], $2::text[]) with ordinality as t (test_case_id, metric, place)
		where not exists (select from pstat_series s where s.test_case_id = t.test_case_id and s.metric = t.metric)
		order by t.place
		on conflict (test_case_id, metric) do nothing`, cases, metrics)
	type row struct {
		ID, TestCaseID int64
		Metric         string
	}
	ids := make(map[seriesKey]int64, len(keys))
	b.Queue(`
		select s.id, s.test_case_id, s.metric from pstat_series s
		join unnest($1::bigint[], $2::text[]) as t (test_case_id, metric) on s.test_case_id = t.test_case_id and s.metric = t.metric`,
		cases, metrics).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, byName[row]())
		for _, r := range found {
			ids[seriesKey{r.TestCaseID, r.Metric}] = r.ID
		}
		return err
	})
	return ids
}

func (b *block) storeErrors(errs []bench.RunError) {
	for _, e := range errs {
		var testCase *int64
		words := "job"
		if e.TestCase != nil {
			id := b.ids[*e.TestCase]
			testCase, words = &id, e.TestCase.String()
		}
		b.last.Queue(`
			insert into error (run_id, test_case_id, context, kind, message, output_tail) values (@run, @case, @words, @kind, @message, @tail)
			on conflict (run_id, coalesce(test_case_id, 0)) do nothing`,
			pgx.NamedArgs{
				"run": b.run.ID, "case": testCase, "words": words, "kind": e.Kind, "message": cleanText(e.Message), "tail": cleanText(e.OutputTail),
			})
	}
}

// count adds to b.last a query that counts the accepted and superseded results, by what is stored.
func (b *block) count(results []bench.TestCaseResult, receipt *bench.BlockReceipt) {
	seen := make(map[spot]bool)
	var cases, artifacts []int64
	for _, r := range results {
		if at := b.spot(r); !seen[at] {
			seen[at] = true
			cases, artifacts = append(cases, at.TestCaseID), append(artifacts, at.ArtifactID)
		}
	}
	b.last.Queue(`
		select count(*) from test_result r join unnest($2::bigint[], $3::bigint[]) as t (test_case_id, artifact_id)
			on t.test_case_id = r.test_case_id and t.artifact_id = r.artifact_id
		where r.run_id = $1`, b.run.ID, cases, artifacts).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&receipt.Accepted)
		receipt.Superseded = len(cases) - receipt.Accepted
		return err
	})
}
