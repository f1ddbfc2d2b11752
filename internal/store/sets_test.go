package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/store"
)

func set(names ...string) bench.Place { return bench.Place{Pool: small, Set: names} }

// command creates a request with one job that has constraints and waits in a place.
func (r record) command(tag string, at bench.Place, c bench.Constraints, affinity time.Duration) (bench.Request, bench.Job) {
	r.t.Helper()
	request := r.inProgress(release(r.t, tag))
	job := newJob(request, "gin")
	command, err := bench.NewCommandJob(project, bench.Command{Argv: []string{"true"}}, target, 0, "")
	require.NoError(r.t, err)
	job.Work, job.Constraints = command.Work, &c
	planned := bench.PlannedJob{Job: job, AffinityFor: affinity}
	planned.PutAt(at)
	require.NoError(r.t, r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: bench.StageOwn, Jobs: []bench.PlannedJob{planned}}))
	return request, r.job(job.Key)
}

func (r record) handOutAt(taskQueue string) (live int, jobs []bench.JobKey) {
	r.t.Helper()
	handed, err := r.HandOut(r.t.Context(), taskQueue, store.HandOutOptions{Depth: func(n int) int { live = n; return 100 }})
	require.NoError(r.t, err)
	for _, h := range handed {
		jobs = append(jobs, h.Job)
	}
	return live, jobs
}

func (r record) taskQueues(c bench.Collector) []string {
	r.t.Helper()
	queues, err := r.CollectorTaskQueues(r.t.Context(), c)
	require.NoError(r.t, err)
	return queues
}

// A job that two of three collectors can run.
func TestAJobOfASet(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two, three := r.register("one"), r.register("two"), r.registerIn("three", bench.Pool{Target: target, SizeClass: 2, Name: "other"}, "zen5")
	needs := bench.Constraints{Machines: []string{"one", "three"}}
	ours := set("one", "three")
	_, job := r.command("v1", ours, needs, 0)
	require.Equal(t, ours.TaskQueue(), job.TaskQueue)
	require.Equal(t, &needs, job.Constraints)

	// Only its collectors serve its task queue, after their pool's and the one of all
	// collectors of the size class.
	everybody := set("one", "two", "three").TaskQueue()
	require.Equal(t, []string{small.TaskQueue(), everybody, ours.TaskQueue()}, r.taskQueues(one))
	require.Equal(t, []string{small.TaskQueue(), everybody}, r.taskQueues(two))
	require.Equal(t, ours.TaskQueue(), r.taskQueues(three)[2])
	r.silent("one", time.Minute)
	live, jobs := r.handOutAt(ours.TaskQueue())
	require.Equal(t, 1, live)
	require.Equal(t, []bench.JobKey{job.Key}, jobs)
	require.Empty(t, r.stranded())

	// The collector that takes the job settles its pool; its task queue stays for the
	// next attempt.
	r.start(job, 1, three)
	taken := r.job(job.Key)
	require.Equal(t, "other", taken.Pool)
	require.Equal(t, ours.TaskQueue(), taken.TaskQueue)
	require.Empty(t, taken.MovedFrom)

	// Without both collectors it is stranded.
	require.NoError(t, r.CloseLostRuns(t.Context(), job.Key, 0, "silent"))
	r.silent("three", time.Minute)
	require.Equal(t, []bench.JobKey{job.Key}, r.stranded())
	stranded, err := r.StrandedJobs(t.Context())
	require.NoError(t, err)
	require.Equal(t, ours.Set, stranded[0].At().Set)
	require.Equal(t, placement.Requirements{Target: target, Constraints: needs, AcrossPools: true}, stranded[0].Requirements())
	moved, err := r.MoveJob(t.Context(), job.Key, ours.TaskQueue(), bench.Place{Pool: large})
	require.NoError(t, err)
	require.True(t, moved)

	require.Equal(t, []string{small.TaskQueue(), everybody}, r.taskQueues(one), "nothing is open there")
	// A job that moves to the set, taken before by a collector outside of it, goes back to
	// the pool of that collector.
	_, late := r.command("v2", bench.Place{Pool: small}, bench.Constraints{Machines: []string{"one", "two", "three"}}, 0)
	r.handOutAt(small.TaskQueue())
	moved, err = r.MoveJob(t.Context(), late.Key, small.TaskQueue(), ours)
	require.NoError(t, err)
	require.True(t, moved)
	r.start(late, 1, two)
	require.Equal(t, small.TaskQueue(), r.job(late.Key).TaskQueue)
	require.Empty(t, r.job(late.Key).MovedFrom)
}

// A collector serves three sets: that of its running job, then the longest-waiting one,
// then the others in turns; last those without a job to take.
func TestACollectorServesThreeSets(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	var places []bench.Place
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		place := set("one", "two", name)
		places = append(places, place)
		_, job := r.command("v"+name, place, bench.Constraints{CPUs: 1}, 0)
		r.handOutAt(place.TaskQueue())
		switch name {
		case "a":
			r.start(job, 1, two)
		case "e":
			r.start(job, 1, one)
			one.CurrentRun = runID(job, 1)
		}
	}
	queues := r.taskQueues(one)
	require.Len(t, queues, 4)
	require.Equal(t, []string{small.TaskQueue(), places[4].TaskQueue(), places[1].TaskQueue()}, queues[:3])
	require.Contains(t, []string{places[2].TaskQueue(), places[3].TaskQueue()}, queues[3])
	other := one
	other.SizeClass = 4
	require.Len(t, r.taskQueues(other), 1, "it was registered anew as another")

	// Only unneeded sets are removed.
	r.execute(`update collector_set set created_at = now() - interval '2 days'`)
	require.NoError(t, r.PruneSets(t.Context()))
	require.Equal(t, 5, r.count(`select count(*) from collector_set`))
	r.execute(`update job_queue set status = 'cancelled', completed_at = now()`)
	require.NoError(t, r.PruneSets(t.Context()))
	require.Zero(t, r.count(`select count(*) from collector_set`))
}

// Sets whose jobs are held, or have a late level, do not keep others from being served.
func TestSetsWithReadyJobsAreServedFirst(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	r.register("two")
	place := func(name string) bench.Place { return set("one", "two", name) }
	queued := func(name, queue string) {
		_, job := r.command("v"+name, place(name), bench.Constraints{CPUs: 1}, 0)
		r.execute(`update job_queue set queue = $2 where key = $1`, job.Key, queue)
		r.handOutAt(place(name).TaskQueue())
	}
	for _, name := range []string{"a", "b", "c"} {
		queued(name, "idle")
	}
	queued("d", "vip")
	require.Equal(t, place("d").TaskQueue(), r.taskQueues(one)[1])

	// All but a later one are held.
	r.execute(`update job_queue set status = 'queued', held = 'pause', handed_out_at = null, handed_out_to = null`)
	queued("e", "idle")
	require.Equal(t, place("e").TaskQueue(), r.taskQueues(one)[1])
	r.execute(`update job_queue set status = 'queued', handed_out_at = null, handed_out_to = null where held = ''`)
	require.Equal(t, place("e").TaskQueue(), r.taskQueues(one)[1], "it is about to be handed out")
}

// A failed job of a set keeps its set for the retry if the set is still known; otherwise
// it waits for its pool.
func TestAJobOfASetIsRetried(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	r.register("two")
	r.register("three")
	ours := set("one", "two")
	request, job := r.command("v1", ours, bench.Constraints{Machines: ours.Set}, 0)
	r.handOutAt(ours.TaskQueue())
	r.start(job, 1, one)
	_, err := r.FinishJob(t.Context(), job.Key, 0, "it failed")
	require.NoError(t, err)
	tryAgain := func(place bench.Place) {
		t.Helper()
		require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Failure, "", nil, "failed"))
		_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, store.Act{Who: "ada"})
		require.NoError(t, err)
		r.execute(`update benchmark_request set status = 'in_progress', admitted_at = now() where id = $1`, request.ID)
		require.NoError(t, r.PruneSets(t.Context()))
		live, jobs := r.handOutAt(place.TaskQueue())
		require.Len(t, jobs, 1)
		require.Positive(t, live)
		require.Contains(t, r.taskQueues(one), place.TaskQueue())
		r.start(r.job(jobs[0]), 1, one)
		_, err = r.FinishJob(t.Context(), jobs[0], 0, "it failed")
		require.NoError(t, err)
	}
	r.execute(`update collector_set set created_at = now() - interval '2 days'`)
	tryAgain(ours)
	r.execute(`update collector_set set created_at = now() - interval '2 days'`)
	require.NoError(t, r.PruneSets(t.Context()))
	require.Zero(t, r.count(`select count(*) from collector_set`))
	tryAgain(bench.Place{Pool: small})
}

// Waiting jobs with constraints are moved as a group: rows silently, jobs in Temporal
// with a record of the move; running jobs stay.
func TestReplace(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	asked := collector("one")
	asked.Labels = map[string]string{"x": "1"}
	one, err := r.RegisterCollector(t.Context(), asked, offline)
	require.NoError(t, err)
	needs := bench.Constraints{Labels: asked.Labels}
	home, away := set("one"), set("one", "two")
	_, handed := r.command("v1", home, needs, 0)
	_, running := r.command("v2", home, needs, 0)
	r.handOutAt(home.TaskQueue())
	r.start(running, 1, one)
	_, queued := r.command("v3", home, needs, 0)
	_, other := r.command("v4", home, bench.Constraints{CPUs: 2}, 0)
	groups, err := r.WaitingGroups(t.Context())
	require.NoError(t, err)
	require.Len(t, groups, 2)
	at := 0
	if groups[0].Constraints.CPUs > 0 {
		at = 1
	}
	g := groups[at]
	require.Equal(t, store.JobGroup{Target: target, SizeClass: 2, TaskQueue: home.TaskQueue(), Set: home.Set, Constraints: needs, AcrossPools: true, Jobs: 2}, g)
	for _, want := range []int{2, 0} { // repeated
		n, err := r.Replace(t.Context(), g, away)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, j := range []bench.Job{handed, queued} {
		require.Equal(t, away.TaskQueue(), r.job(j.Key).TaskQueue)
	}
	require.Equal(t, home.TaskQueue(), r.job(running.Key).TaskQueue)
	require.Equal(t, home.TaskQueue(), r.job(other.Key).TaskQueue)
	require.Equal(t, home.TaskQueue(), r.job(handed.Key).MovedFrom)
	require.Nil(t, r.job(queued.Key).MovedAt, "it has been nowhere")
	moved, err := r.MovedWaiting(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, moved, 1)
	require.Equal(t, away.TaskQueue(), moved[0].TaskQueue)
	require.Equal(t, away.Set, moved[0].Set)
}

// Commands without constraints follow the fleet as well. Whether they must move is
// decided without reading them all.
func TestUnconstrainedCommandsFollowTheFleet(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	const n = 3000
	request := batch(t, n)
	_, _, err := r.CreateCommands(t.Context(), request, func(yield func(bench.PlannedJob, error) bool) {
		for j := range lines(request, n) {
			j.Constraints = nil
			if !yield(j, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.Len(t, r.taskQueues(one), 1)
	r.handOutUpTo(3)
	running := lineJob(request, 1)
	r.start(running, 1, one)
	suite, _ := r.oneJob("v1", "gin")

	before := r.reads("job_queue")
	other, err := store.Open(t.Context(), r.url)
	require.NoError(t, err)
	groups, err := other.WaitingGroups(t.Context())
	require.NoError(t, err)
	other.Close()
	require.Equal(t, []store.JobGroup{{Target: target, SizeClass: 2, TaskQueue: small.TaskQueue(), AcrossPools: true}}, groups)
	require.Eventually(t, func() bool { return r.reads("job_queue") > before }, 2*time.Minute, 20*time.Millisecond)
	require.Less(t, r.reads("job_queue")-before, 50)

	// With a second pool they belong to both, except for running jobs and those of one
	// pool.
	two := r.registerIn("two", bench.Pool{Target: target, SizeClass: 2, Name: "other"}, "zen5")
	both := set("one", "two")
	require.Equal(t, []string{small.TaskQueue(), both.TaskQueue()}, r.taskQueues(one), "before anything waits there")
	for _, want := range []int{n - 1, 0} { // repeated
		moved, err := r.Replace(t.Context(), groups[0], both)
		require.NoError(t, err)
		require.Equal(t, want, moved)
	}
	require.Equal(t, small.TaskQueue(), r.job(running.Key).TaskQueue)
	require.Equal(t, small.TaskQueue(), r.job(r.openJobs(suite.ID)[0].Key).TaskQueue)
	live, handed := r.handOutAt(both.TaskQueue())
	require.Equal(t, 2, live)
	require.NotEmpty(t, handed)
	r.start(lineJob(request, 2), 1, two)

	// A third collector joins: the former task queue is served until it is empty.
	r.registerIn("three", bench.Pool{Target: target, SizeClass: 2, Name: "other"}, "zen5")
	require.Equal(t, []string{small.TaskQueue(), set("one", "two", "three").TaskQueue(), both.TaskQueue()}, r.taskQueues(one))

	// A removed set is recorded again.
	r.execute(`delete from collector_set`)
	groups, err = r.WaitingGroups(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(groups, func(g store.JobGroup) bool { return g.TaskQueue == both.TaskQueue() })
	require.Empty(t, groups[at].Set)
	_, err = r.Replace(t.Context(), groups[at], both)
	require.NoError(t, err)
	live, _ = r.handOutAt(both.TaskQueue())
	require.Equal(t, 2, live)
}

// A job waits for caches until its time is over, then for any collector.
func TestWaitingForCachesEnds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	needs := bench.Constraints{CacheDirs: []string{"go"}}
	_, job := r.command("v1", set("one"), needs, time.Hour)
	require.WithinDuration(t, time.Now().Add(time.Hour), *job.AffinityUntil, 5*time.Minute)
	group := func() store.JobGroup {
		groups, err := r.WaitingGroups(t.Context())
		require.NoError(t, err)
		require.Len(t, groups, 1)
		return groups[0]
	}
	require.True(t, group().Affine)
	require.False(t, group().Over)
	require.Equal(t, needs.CacheDirs, group().Requirements().Constraints.CacheDirs)
	r.execute(`update job_queue set affinity_until = now()`)
	require.True(t, group().Over)
	require.Empty(t, group().Requirements().Constraints.CacheDirs)
	_, err := r.Replace(t.Context(), group(), bench.Place{Pool: small})
	require.NoError(t, err)
	require.Nil(t, r.job(job.Key).AffinityUntil)
	require.Equal(t, small.TaskQueue(), r.job(job.Key).TaskQueue)
	require.False(t, group().Affine, "it does not wait for caches again")
	require.Empty(t, group().Requirements().Constraints.CacheDirs)
}

func TestFleet(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := collector("one")
	c.MachineType, c.MachineGroup, c.Devices, c.MemoryBytes, c.CPUs, c.Host = "dc", "taishan", []string{"gpu"}, 8<<30, 4, "big"
	c.Labels = map[string]string{"rack": "2"}
	registered, err := r.RegisterCollector(t.Context(), c, offline)
	require.NoError(t, err)
	require.NoError(t, r.SetCacheDirs(t.Context(), "one", registered.Epoch, []string{"go", "go/mod"}))
	require.ErrorIs(t, r.SetCacheDirs(t.Context(), "one", registered.Epoch-1, nil), store.ErrFenced)
	r.register("two")
	r.silent("two", time.Minute)
	r.register("three")
	require.NoError(t, r.SetActive(t.Context(), "three", false))
	fleet, err := r.Fleet(t.Context(), offline)
	require.NoError(t, err)
	require.Len(t, fleet, 3)
	require.Equal(t, placement.Collector{
		Name: "one", Pool: small, Type: "dc", Group: "taishan", Host: "big", Devices: []string{"gpu"}, Labels: map[string]string{"rack": "2"},
		MemoryBytes: 8 << 30, CPUs: 4, CacheDirs: []string{"go", "go/mod"}, Live: true, Active: true,
	}, fleet[0])
	require.False(t, fleet[1].Live || fleet[1].Active, "%+v", fleet[1])
	require.False(t, fleet[2].Live)
	require.True(t, fleet[2].Active)
	require.InDelta(t, time.Minute, fleet[2].Away, float64(30*time.Second))
}
