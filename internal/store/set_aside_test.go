package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// ran runs a job on a collector, with five iterations of which some are
// disturbed, and judges the collector twice.
func (r record) ran(tag string, c bench.Collector, disturbedIterations ...int) (judged bench.Collector, setAside bool) {
	r.t.Helper()
	_, job := r.oneJob(tag, "gin")
	run := r.start(job, 1, c).Run.ID
	r.block(run, disturbed(measured("gin", 1, 2, 3, 4, 5), byOthers, disturbedIterations...))
	require.NoError(r.t, r.FinishRun(r.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	r.finish(job, "")
	judged, setAside, err := r.JudgeCollector(r.t.Context(), run, offline)
	require.NoError(r.t, err)
	again, _, err := r.JudgeCollector(r.t.Context(), run, offline)
	require.NoError(r.t, err)
	require.Equal(r.t, judged, again, "repeating it changes nothing")
	return judged, setAside
}

const threeDisturbed = "its last 3 runs were disturbed, mostly by foreign CPU time"

func TestACollectorWhoseRunsAreDisturbedIsSetAside(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	r.ran("v1", one, 0, 1)
	r.ran("v2", one, 0, 1)
	c, aside := r.ran("v3", one, 0) // a fifth is not too many
	require.False(t, aside)
	require.Empty(t, c.DisturbedBy)
	r.ran("v4", one, 0, 1, 2)
	r.ran("v5", two, 0, 1, 2) // another collector's
	_, aside = r.ran("v6", one, 0, 1, 2)
	require.False(t, aside)
	c, aside = r.ran("v7", one, 0, 1, 2)
	require.True(t, aside)
	require.Equal(t, threeDisturbed, c.DisturbedBy)
	require.NotNil(t, c.SetAsideAt)
	require.False(t, c.Active)
	require.Equal(t, c, r.collector("one"))

	// It begins nothing, and stays so across a restart.
	_, job := r.oneJob("v8", "gin")
	_, err := r.StartRun(t.Context(), r.runStart(runID(job, 1), one))
	require.ErrorIs(t, err, store.ErrDraining)
	one = r.register("one")
	require.NotNil(t, one.SetAsideAt)
	require.False(t, one.Active)

	// Until its machine was quiet for five minutes, without a break.
	quiet, busy := true, false
	reconsider := func(name string, epoch int64, report *bool) bench.Collector {
		c, err := r.Reconsider(t.Context(), name, epoch, report, offline)
		require.NoError(t, err)
		return c
	}
	since := func(minutes int) {
		r.execute(`update collector_config set quiet_from = now() - make_interval(mins => $1) where set_aside_at is not null`, minutes)
	}
	const quietOnes = `select count(*) from collector_config where quiet_from is not null`
	require.False(t, reconsider("one", one.Epoch, &quiet).Active)
	since(4)
	require.False(t, reconsider("one", one.Epoch, &quiet).Active)
	require.False(t, reconsider("one", one.Epoch, nil).Active)
	require.Equal(t, 1, r.count(quietOnes), "a heartbeat without a reading says nothing")
	since(6)
	require.False(t, reconsider("one", one.Epoch, &busy).Active)
	require.Zero(t, r.count(quietOnes))
	require.False(t, reconsider("one", one.Epoch, &quiet).Active)
	since(5)
	c = reconsider("one", one.Epoch, nil)
	require.True(t, c.Active)
	require.Nil(t, c.SetAsideAt)
	require.Empty(t, c.DisturbedBy)
	require.Equal(t, c, reconsider("one", one.Epoch, &busy), "it is not set aside")
	_, err = r.Reconsider(t.Context(), "one", one.Epoch-1, &quiet, offline)
	require.ErrorIs(t, err, store.ErrFenced)
	_, err = r.Reconsider(t.Context(), "three", 1, &quiet, offline)
	require.ErrorIs(t, err, store.ErrFenced)

	// What was before counts no longer.
	_, aside = r.ran("v9", one, 0, 1, 2)
	require.False(t, aside)
}

func TestDisturbedCommandsSetNobodyAside(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	r.register("two")
	for range 3 {
		q := r.inProgress(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submission: bench.Submission{Submitter: "ada"}, Commands: bench.Commands{Command: &bench.Command{Argv: []string{"x"}}}})
		job := newCommand(q, 0)
		job.Command = q.Command
		r.expand(q, job)
		run := r.start(job, 1, one).Run.ID
		r.block(run, disturbed(bench.TestCaseResult{TestCase: job.TestCases[0], Collections: measured("", 1).Collections}, byOthers, 0))
		require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
		c, aside, err := r.JudgeCollector(t.Context(), run, offline)
		require.NoError(t, err)
		require.False(t, aside)
		require.Empty(t, c.DisturbedBy)
	}
}

// Two collectors on one busy machine gain nothing if one of them stands still.
func TestACollectorIsSetAsideOnlyForABetterOne(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	for i := range 3 {
		r.ran(fmt.Sprintf("v1.%d", i), one, 0, 1)
	}
	require.NotNil(t, r.collector("one").SetAsideAt)
	for i := range 3 {
		r.ran(fmt.Sprintf("v2.%d", i), two, 0, 1)
	}
	require.Nil(t, r.collector("two").SetAsideAt)
	c, err := r.Reconsider(t.Context(), "one", one.Epoch, nil, offline)
	require.NoError(t, err)
	require.True(t, c.Active)
	require.Equal(t, threeDisturbed, c.DisturbedBy)
	_, aside := r.ran("v3", one, 0, 1)
	require.False(t, aside)
}

// A machine that does other work by configuration is never quiet: setting it aside would
// end its work for good.
func TestACoLocatedCollectorIsOnlyFlagged(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	shared, _ := r.register("shared"), r.register("other")
	r.execute(`update collector_config set co_located = true where name = 'shared'`)
	for i := range 3 {
		c, aside := r.ran(fmt.Sprintf("v%d", i), shared, 0, 1, 2)
		require.False(t, aside)
		require.True(t, c.Active)
		if i == 2 {
			require.Equal(t, threeDisturbed, c.DisturbedBy)
		}
	}
}

func TestTheLastLiveCollectorOfAPoolIsOnlyFlagged(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	drained, elsewhere := r.register("drained"), r.registerIn("elsewhere", bench.Pool{Target: target, SizeClass: 8, Name: "large"}, "zen4")
	require.NoError(t, r.SetActive(t.Context(), drained.Name, false))
	disturb := func(c bench.Collector, from int) (judged bench.Collector, aside bool) {
		for i := range 3 {
			judged, aside = r.ran(fmt.Sprintf("v%d", from+i), c, 0, 1)
		}
		return judged, aside
	}
	_, aside := disturb(one, 10)
	require.True(t, aside)
	c, aside := disturb(two, 20)
	require.False(t, aside, "drained and silent ones, and those of other pools, take no job of this one")
	require.Equal(t, threeDisturbed, c.DisturbedBy)
	require.True(t, c.Active)
	require.NotEmpty(t, elsewhere.Name)

	// The other one falls silent: the one that was set aside has to do, flagged.
	r.execute(`update collector_config set last_heartbeat = now() - interval '1 hour' where name = 'two'`)
	c, err := r.Reconsider(t.Context(), "one", one.Epoch, nil, offline)
	require.NoError(t, err)
	require.True(t, c.Active)
	require.Nil(t, c.SetAsideAt)
	require.Equal(t, threeDisturbed, c.DisturbedBy)

	// A quiet run removes the flag.
	c, _ = r.ran("v30", one, 0)
	require.Empty(t, c.DisturbedBy)

	// So does a person, and earlier runs count no longer.
	require.NoError(t, r.SetActive(t.Context(), "two", true))
	require.Empty(t, r.collector("two").DisturbedBy)
	two = r.register("two")
	_, aside = r.ran("v40", two, 0, 1)
	require.False(t, aside)
}

// Of two disturbed collectors that are judged at once, one stays.
func TestTheCollectorsOfAPoolAreNotAllSetAsideAtOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	var runs []bench.RunID
	for n, name := range []string{"one", "two", "three"} {
		c := r.register(name)
		for i := range 3 {
			_, job := r.oneJob(fmt.Sprintf("v%d.%d", n, i), "gin")
			run := r.start(job, 1, c).Run.ID
			r.block(run, disturbed(measured("gin", 1), byOthers, 0))
			require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
			if i == 2 {
				runs = append(runs, run)
			}
		}
	}
	for _, err := range together(3, func(i int) error {
		_, _, err := r.JudgeCollector(t.Context(), runs[i], offline)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 1, r.count(`select count(*) from collector_config where active`))
	require.Equal(t, 2, r.count(`select count(*) from collector_config where set_aside_at is not null`))
	require.Equal(t, 3, r.count(`select count(*) from collector_config where disturbed_by <> ''`))

	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	_, _, err := r.JudgeCollector(t.Context(), runs[0], offline)
	require.ErrorIs(t, err, store.ErrNotFound)
}
