package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// Operations that lock the same rows follow one order: none becomes the victim of a
// deadlock, even if it is refused.
func TestConcurrentOperationsNeverDeadlock(t *testing.T) {
	t.Parallel()
	operateTogether(t, 20)
}

func TestLongConcurrentOperationsNeverDeadlock(t *testing.T) {
	t.Parallel()
	operateTogether(t, 60)
}

func operateTogether(t *testing.T, rounds int) {
	t.Helper()
	r := newRecord(t)
	r.Store = storetest.Open(t, r.url+"&pool_max_conns=12&options=-c%20deadlock_timeout%3D20ms")
	const requests, workers = 6, 6
	tags, ids := make([]string, requests), make([]bench.RequestID, requests)
	for i := range tags {
		tags[i] = fmt.Sprint("v", i)
		ids[i] = r.inProgress(release(t, tags[i])).ID
	}
	names := []string{"one", "two", "three"}
	for _, name := range names {
		r.register(name)
	}
	places := []bench.Place{set("one", "two"), set("two", "three"), set("one", "three"), {Pool: small}}
	suiteJob := func(tag string, at bench.Place, benchmark string) bench.PlannedJob {
		j := bench.PlannedJob{Job: newJob(bench.Request{Tag: tag}, benchmark)}
		j.Shape = "s"
		j.PutAt(at)
		return j
	}
	act := store.Act{Who: "ops", Reason: "for a test"}
	// The first request stays, so that jobs can always run.
	ending := func(random *rand.Rand) int { return 1 + random.IntN(requests-1) }
	var accepted atomic.Bool // a result

	operations := map[string]func(random *rand.Rand) error{
		"expand": func(random *rand.Rand) error {
			var jobs []bench.PlannedJob
			for range 3 { // also other requests' jobs, in any order
				jobs = append(jobs, suiteJob(tags[random.IntN(requests)], places[random.IntN(len(places))], fmt.Sprint("b", random.IntN(8))))
			}
			return r.ExpandRequest(t.Context(), ids[random.IntN(requests)], store.Expansion{Stage: bench.StageParent, Jobs: jobs})
		},
		"cancel": func(random *rand.Rand) error {
			_, _, err := r.EndRequest(t.Context(), ids[ending(random)], store.EndOptions{Outcome: bench.Cancelled}, act)
			return err
		},
		"reopen": func(random *rand.Rand) error {
			_, err := r.Reopen(t.Context(), ids[random.IntN(requests)], store.ReopenOptions{Queue: "project:go"}, act)
			return err
		},
		"rerun": func(random *rand.Rand) error {
			choice := graphset.Choice{Rerun: true, Downstream: graphset.DownstreamAll}
			choice.Select.Kinds = []graph.Kind{graph.KindBenchmark}
			_, err := r.Reopen(t.Context(), ids[random.IntN(requests)], store.ReopenOptions{Queue: "project:go", Retrigger: &choice}, act)
			if refused := (*graphset.NothingChosenError)(nil); errors.As(err, &refused) {
				return store.ErrConflict
			}
			return err
		},
		"admit": func(*rand.Rand) error {
			_, err := r.Admit(t.Context(), project, requests, allInOrder)
			return err
		},
		"hand out": func(random *rand.Rand) error {
			_, err := r.HandOut(t.Context(), places[random.IntN(len(places))].TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 3 }})
			return err
		},
		"take back": func(*rand.Rand) error { return r.ReleaseHeld(t.Context()) },
		"purge": func(random *rand.Rand) error {
			_, err := r.PurgeArtifact(t.Context(), project, tags[ending(random)], store.Act{Who: "ops", DryRun: true})
			return err
		},
		"retain": func(random *rand.Rand) error {
			kinds := bench.RetentionKinds()
			_, _, err := r.RemoveExpired(t.Context(), store.Keep{Kind: kinds[random.IntN(len(kinds))], For: time.Nanosecond})
			return err
		},
		"pack": func(*rand.Rand) error {
			_, err := r.PackResults(t.Context(), project)
			return err
		},
		"rebuild": func(*rand.Rand) error {
			_, err := r.RebuildPacked(t.Context(), project, act)
			return err
		},
		"replace": func(random *rand.Rand) error {
			_, err := r.Replace(t.Context(), store.JobGroup{
				Target: target, SizeClass: small.SizeClass, TaskQueue: places[random.IntN(3)].TaskQueue(), Constraints: bench.Constraints{Devices: []string{"gpu"}},
				AcrossPools: true,
			}, places[random.IntN(len(places))])
			return err
		},
		"commands": func(random *rand.Rand) error {
			request := batch(t, 4)
			_, _, err := r.CreateCommands(t.Context(), request, func(yield func(bench.PlannedJob, error) bool) {
				for n, at := range random.Perm(len(places)) {
					j := bench.PlannedJob{Job: lineJob(request, 2*n+2)}
					j.PutAt(places[at])
					if !yield(j, nil) {
						return
					}
				}
			})
			return err
		},
		"select sizes": func(random *rand.Rand) error {
			var keys []bench.JobKey
			for range 4 {
				keys = append(keys, suiteJob(tags[random.IntN(requests)], bench.Place{Pool: small}, fmt.Sprint("b", random.IntN(8))).Key)
			}
			_, err := r.SelectSizes(t.Context(), project, "s", keys, func(store.Sizing, *store.SizeStatistics) (store.SizeChoice, error) {
				return store.SizeChoice{Place: places[random.IntN(len(places))]}, nil
			})
			return err
		},
		"create": func(random *rand.Rand) error {
			child := release(t, fmt.Sprint("child", random.IntN(1000)))
			child.Type, child.Parent, child.PR = bench.Try, tags[random.IntN(requests)], 1+random.IntN(2)
			stored, _, err := r.CreateWithAncestors(t.Context(), child, store.Creation{})
			if err == nil {
				_, err = r.SupersedeBuilds(t.Context(), stored)
			}
			return err
		},
		"leave": func(random *rand.Rand) error {
			_, err := r.LeaveBranch(t.Context(), project, []string{tags[ending(random)], tags[ending(random)]})
			return err
		},
		"run": func(random *rand.Rand) error {
			job := suiteJob(tags[random.IntN(requests)], bench.Place{Pool: small}, fmt.Sprint("b", random.IntN(8)))
			collectors, err := r.Collectors(t.Context())
			if err != nil {
				return err
			}
			c, id := collectors[random.IntN(len(collectors))], runID(job.Job, random.IntN(50))
			task, err := storetest.Dispatched(t.Context(), r.url, id, c.Name)
			if err != nil {
				return err
			}
			start := store.RunStart{Run: id, Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue}
			if _, err := r.StartRun(t.Context(), start); err != nil {
				return err
			}
			receipt, err := r.StoreBlock(t.Context(), id, []bench.TestCaseResult{disturbed(measured(job.TestCases[0].Benchmark, 1, 2), byOthers, random.IntN(3))}, nil)
			if err != nil {
				return err
			}
			if receipt.Accepted > 0 {
				accepted.Store(true)
			}
			if err := r.FinishRun(t.Context(), id, bench.RunEnd{Outcome: bench.RunFailure}); err != nil {
				return err
			}
			if _, _, err := r.JudgeCollector(t.Context(), id, offline); err != nil {
				return err
			}
			_, err = r.Reconsider(t.Context(), c.Name, c.Epoch, nil, offline)
			return err
		},
	}
	order := make([]string, 0, len(operations))
	for name := range operations {
		order = append(order, name)
	}
	for _, err := range together(workers, func(worker int) error {
		random := rand.New(rand.NewPCG(1, uint64(worker))) //nolint:gosec // not for secrets
		for n := 0; n < rounds || !accepted.Load() && n < 10*rounds; n++ {
			name := order[random.IntN(len(order))]
			if n >= rounds { // the rest would make the record grow without end
				name = []string{"expand", "run"}[random.IntN(2)]
			}
			if e, ok := errors.AsType[*pgconn.PgError](operations[name](random)); ok {
				return fmt.Errorf("%s: %w: %s", name, e, e.Detail)
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	require.Zero(t, r.count(`select deadlocks from pg_stat_database where datname = current_database()`))
	require.NotZero(t, r.count(`select count(*) from job_queue`))
	require.NotZero(t, r.count(`select count(*) from test_result`), "the operations do something")
}
