package orchestration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// measuredLongAgo releases an artifact whose iterations take a tenth of a second, and lets
// hours pass.
func (b *bundle) measuredLongAgo(tag string, c bench.Collector) {
	b.t.Helper()
	b.released(tag, c, 1)
	b.execute(`update collection set facts = '{"duration_seconds": 0.1}'`)
	b.execute(`update benchmark_request set jobs_done_at = jobs_done_at - interval '2 hours'`)
}

// lastCanary returns the newest canary of a collector; nil: it had none.
func (b *bundle) lastCanary(collector string) *bench.Canary {
	b.t.Helper()
	all, err := b.store.LastCanaries(b.t.Context())
	require.NoError(b.t, err)
	for _, k := range all {
		if k.Collector == collector {
			return &k
		}
	}
	return nil
}

// canaryJob writes the job of a collector's open canary.
func (b *bundle) canaryJob(collector string) (protocol.RequestRef, bench.Job) {
	b.t.Helper()
	k := b.lastCanary(collector)
	require.NotNil(b.t, k)
	require.Empty(b.t, k.Outcome)
	ref := protocol.RequestRef{Project: project, ID: k.Request}
	out, err := b.Expand(b.t.Context(), own(ref))
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	jobs := b.jobs(ref)
	require.Len(b.t, jobs, 1)
	return ref, jobs[0]
}

// flown carries a collector's canary out, with these wall times of the two sides.
func (b *bundle) flown(c bench.Collector, one, other float64) *bench.Canary {
	b.t.Helper()
	ref, job := b.canaryJob(c.Name)
	b.measureBoth(job, c, one, other)
	b.ended(ref, job)
	return b.lastCanary(c.Name)
}

// ended ends a canary's job and request, and reconciles twice.
func (b *bundle) ended(ref protocol.RequestRef, job bench.Job) {
	b.t.Helper()
	require.Equal(b.t, bench.JobSuccess, b.recordEnd(job.Key, "").Status)
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref))
	require.True(b.t, b.nextLook(ref).Decided, "it has one look")
	b.complete(ref, "")
	b.pass(b.t)
	b.pass(b.t)
}

func (b *bundle) collector(name string) bench.Collector {
	b.t.Helper()
	all, err := b.store.Collectors(b.t.Context())
	require.NoError(b.t, err)
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	require.Fail(b.t, "no collector "+name)
	return bench.Collector{}
}

// nextHour lets an hour pass for canaries.
func (b *bundle) nextHour() {
	b.t.Helper()
	b.execute(`update canary set slot = slot - interval '1 day', created_at = created_at - interval '1 hour', ended_at = ended_at - interval '1 hour'`)
}

func TestEachCollectorHasACanaryADay(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one, two := b.register("c1"), b.register("c2")
	b.released("1.0.0", one, 1)
	b.Canaries = true
	b.pass(t)
	require.Nil(t, b.lastCanary("c1"), "a service that was just set up is left alone")
	b.measuredLongAgo("1.1.0", one)
	b.workflows.taken()
	b.pass(t)
	require.Len(t, b.workflows.taken(), 2, "one request is started for each")
	b.pass(t)
	require.Empty(t, b.workflows.taken())

	ref, job := b.canaryJob("c1")
	r := b.request(ref)
	require.Equal(t, []any{bench.AdHoc, "1.1.0", bench.CanarySubmitter}, []any{r.Type, r.Tag, r.Submitter})
	require.True(t, job.IsCanary())
	require.Equal(t, []any{"1.1.0", "1.1.0+canary", "idle", bench.CanaryPairs}, []any{job.Tag, job.Versus, job.Queue, job.Iterations})
	require.Len(t, job.TestCases, 1)
	require.NotEqual(t, pool.TaskQueue(), job.TaskQueue)
	for name, serves := range map[string]bool{"c1": true, "c2": false} {
		queues, err := b.store.CollectorTaskQueues(t.Context(), b.collector(name))
		require.NoError(t, err)
		require.Equal(t, serves, len(queues) == 2 && queues[1] == job.TaskQueue, "%s serves %v", name, queues)
	}
	before, err := b.store.SamplesOf(t.Context(), project, "1.1.0")
	require.NoError(t, err)
	b.measureBoth(job, one, 1, 1)
	b.ended(ref, job)
	k := b.lastCanary("c1")
	require.Equal(t, bench.CanaryPassed, k.Outcome, k.Message)
	require.NotNil(t, k.EndedAt)
	require.True(t, b.collector("c1").Active)
	after, err := b.store.SamplesOf(t.Context(), project, "1.1.0")
	require.NoError(t, err)
	require.Equal(t, before, after, "its values are no results of the artifact")

	require.Equal(t, bench.CanaryPassed, b.flown(two, 2, 2).Outcome)
	b.pass(t)
	require.NotEmpty(t, b.lastCanary("c1").Outcome, "until tomorrow")
	b.nextHour()
	b.pass(t)
	require.Empty(t, b.lastCanary("c1").Outcome)
}

func TestACollectorWhoseCanaryFailsIsSetAsideUntilOnePasses(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one, two := b.register("c1"), b.register("c2")
	b.measuredLongAgo("1.1.0", one)
	b.Canaries = true
	b.pass(t)
	k := b.flown(one, 1, 1.2)
	require.Equal(t, bench.CanaryChanged, k.Outcome)
	require.Contains(t, k.Message, "an artifact differs from itself: wall-time of gin")
	c := b.collector("c1")
	require.False(t, c.Active)
	require.NotNil(t, c.SetAsideAt)
	require.True(t, c.CanaryFailed)
	require.Equal(t, "its last canary failed: "+k.Message, c.DisturbedBy)

	// A quiet machine is not enough.
	quiet := true
	b.execute(`update collector_config set quiet_from = now() - interval '1 hour'`)
	c, err := b.store.Reconsider(t.Context(), "c1", one.Epoch, &quiet, offline)
	require.NoError(t, err)
	require.False(t, c.Active)

	// It takes its canaries, in the same hour none, and nothing else.
	b.pass(t)
	require.Equal(t, k, b.lastCanary("c1"))
	b.nextHour()
	b.pass(t)
	ref, job := b.canaryJob("c1")
	queues, err := b.store.CollectorTaskQueues(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{job.TaskQueue}, queues)
	open, err := b.store.HasOpenJobs(t.Context(), queues)
	require.NoError(t, err)
	require.True(t, open)
	other := b.running("1.2.0")
	b.handOut(other)
	_, err = b.store.StartRun(t.Context(), b.runStart(b.jobs(other)[0].Key, one, 1))
	require.ErrorIs(t, err, store.ErrDraining)
	b.measureBoth(job, one, 1, 1)
	b.ended(ref, job)
	require.Equal(t, bench.CanaryPassed, b.lastCanary("c1").Outcome)
	c = b.collector("c1")
	require.True(t, c.Active)
	require.Nil(t, c.SetAsideAt)
	require.False(t, c.CanaryFailed)
	require.Empty(t, c.DisturbedBy)

	// Without a better one, it is only flagged.
	require.NoError(t, b.store.SetActive(t.Context(), "c1", false))
	require.Equal(t, bench.CanaryChanged, b.flown(two, 1.2, 1).Outcome)
	c = b.collector("c2")
	require.True(t, c.Active)
	require.Nil(t, c.SetAsideAt)
	require.True(t, c.CanaryFailed)
	require.Contains(t, c.DisturbedBy, "its last canary failed")
	require.NoError(t, b.store.SetActive(t.Context(), "c2", true))
	require.False(t, b.collector("c2").CanaryFailed, "a person knows better")
}

func TestACanaryThatMeasuresNothingSaysNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one := b.register("c1")
	b.register("c2")
	b.measuredLongAgo("1.1.0", one)
	b.Canaries = true
	b.pass(t)
	ref, _ := b.canaryJob("c1")
	b.execute(`update canary set created_at = now() - interval '25 hours'`)
	b.pass(t)
	require.Equal(t, bench.Cancelled, b.request(ref).Outcome)
	b.pass(t)
	k := b.lastCanary("c1")
	require.Equal(t, bench.CanaryUnmeasured, k.Outcome)
	require.Contains(t, k.Message, "its collector had no time for it for a day")
	require.True(t, b.collector("c1").Active)
}

func TestWhoHasNoCanary(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*bundle){
		"verify is off":         func(b *bundle) { b.apply(`{"verify": "off"}`) },
		"the project is paused": func(b *bundle) { b.execute(`insert into queue_pause values ('go', 'ada', now(), 'why')`) },
		"it is drained":         func(b *bundle) { b.execute(`update collector_config set active = false`) },
		"it is offline":         func(b *bundle) { b.execute(`update collector_config set last_heartbeat = now() - interval '1 hour'`) },
		"iterations take long":  func(b *bundle) { b.execute(`update collection set facts = '{"duration_seconds": 10}'`) },
		"they are off":          func(b *bundle) { b.Canaries = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			b.Canaries = true
			b.measuredLongAgo("1.1.0", b.register("c1"))
			prepare(b)
			b.pass(t)
			require.Nil(t, b.lastCanary("c1"))
		})
	}
}

// The canaries of a collector tell how far the two sides of its sessions are apart, which
// the next comparison takes into account.
func TestCanariesTeachHowFarSidesAreApart(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	b.measuredLongAgo("1.0.0", c)
	b.Canaries = true
	for i := range 6 {
		b.pass(t)
		ref, job := b.canaryJob("c1")
		run := b.start(job.Key, c, 1)
		var results []bench.TestCaseResult
		for side, tag := range []string{job.Versus, job.Tag} {
			r := bench.TestCaseResult{TestCase: job.TestCases[0], Tag: tag}
			for n := range job.Iterations {
				// Within a session ±1 %, between its sides half as much.
				value := 1 + 0.01*float64((n*7+side*3)%5-2)/2
				if side == 1 {
					value *= 1 + 0.02*float64(i%2*2-1)
				}
				r.Collections = append(r.Collections, bench.Collection{
					Iteration: n + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: value},
				})
			}
			results = append(results, r)
		}
		_, err := b.store.StoreBlock(t.Context(), run, results, nil)
		require.NoError(t, err)
		require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
		b.ended(ref, job)
		b.nextHour()
	}
	sessions, err := b.store.CanarySessions(t.Context(), target)
	require.NoError(t, err)
	require.Len(t, sessions, 6)
	require.Equal(t, []any{"c1", bench.WallTime, bench.CanaryPairs}, []any{sessions[0].Collector, sessions[0].Metric, len(sessions[0].A)})

	b.Canaries = false
	ref := b.jobsEnded("1.1.0", c, 1.3)
	b.nextLook(ref)
	rows := b.comparison(ref).Rows
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.Greater(t, row.Tau, 0.5, "a session counts as one pair")
	}
}
