package diagnose_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
)

const queue = "bench/x86_64-unknown-linux-gnu/2/main"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// waiting is a job that only waits for its turn.
func waiting() diagnose.JobCase {
	return diagnose.JobCase{
		Key: "aaaaaaaaaaaaaaaa", Project: "go", Status: bench.JobQueued, TaskQueue: queue, SizeClass: 2,
		Waiters: []diagnose.Waiter{{ID: "raaaaaaaaaa", InTurn: true}},
		Queue:   diagnose.Queue{Name: "user:ada", Class: "weighted", Weight: 2, Level: 3, OwnLevel: 3, Share: new(0.5), Before: 4, Waiting: 9},
		Account: diagnose.Account{Name: "ada", FirstLevel: 1},
		Size:    diagnose.Size{Class: 2},
	}
}

func changed(changes ...func(*diagnose.JobCase)) diagnose.JobCase {
	c := waiting()
	for _, change := range changes {
		change(&c)
	}
	return c
}

func TestJobWaits(t *testing.T) {
	t.Parallel()
	handedOut := func(c *diagnose.JobCase) {
		c.Status, c.HandedOut = bench.JobHandedOut, now.Add(-time.Minute)
	}
	for name, c := range map[string]struct {
		job  diagnose.JobCase
		want []string
	}{
		"its turn within its queue": {waiting(), []string{"4 jobs of its queue go before it at " + queue}},
		"one before it":             {changed(func(c *diagnose.JobCase) { c.Queue.Before = 1 }), []string{"1 job of its queue goes before it at " + queue}},
		"very many before it":       {changed(func(c *diagnose.JobCase) { c.Queue.Before, c.Queue.More = 10000, true }), []string{"10000 or more jobs of its queue go before it at " + queue}},
		"the next hand-out":         {changed(func(c *diagnose.JobCase) { c.Queue.Before = 0 }), []string{"it is the next of its queue to be handed out at " + queue}},
		"the next, behind what waits in Temporal": {
			changed(func(c *diagnose.JobCase) { c.Queue.Before, c.Queue.HandedOut = 0, 2 }),
			[]string{"it is the next of its queue to be handed out at " + queue + ", where 2 jobs of it already wait for an idle collector"},
		},
		"an idle collector": {changed(handedOut), []string{"it was handed out to task queue " + queue + ", and has waited there for an idle collector since 2026-03-01 11:59:00 UTC"}},
		"an idle collector, again": {
			changed(handedOut, func(c *diagnose.JobCase) {
				c.Status = bench.JobInProgress
				c.Runs = []diagnose.Run{{Outcome: bench.RunLost, Started: now.Add(-50 * time.Second), Finished: now.Add(-10 * time.Second)}}
			}),
			[]string{"it was handed out to task queue " + queue + ", and has waited there for an idle collector since 2026-03-01 11:59:50 UTC"},
		},
		"nobody wants it": {
			changed(func(c *diagnose.JobCase) { c.Waiters = nil }),
			[]string{
				"no request waits for it any more, so that it is not started; the next reconciliation ends it",
				"4 jobs of its queue go before it at " + queue,
			},
		},
		"the turn of its request": {
			changed(func(c *diagnose.JobCase) { c.Waiters[0].InTurn = false }),
			[]string{
				"request raaaaaaaaaa has not had its turn; 'benchloom explain raaaaaaaaaa' says what it waits for",
				"4 jobs of its queue go before it at " + queue,
			},
		},
		"paused": {
			changed(func(c *diagnose.JobCase) { c.Pause = &diagnose.Pause{Who: "root", Why: "new disks"} }),
			[]string{
				"project go was paused by root: new disks; 'benchloom queue resume go' resumes it",
				"4 jobs of its queue go before it at " + queue,
			},
		},
		"paused, but handed out before": {
			changed(handedOut, func(c *diagnose.JobCase) { c.Pause = &diagnose.Pause{Who: "root", Why: "new disks"} }),
			[]string{"it was handed out to task queue " + queue + ", and has waited there for an idle collector since 2026-03-01 11:59:00 UTC"},
		},
		"stranded": {
			changed(func(c *diagnose.JobCase) { c.Stranded = "pool x has had no live collector for 1m0s" }),
			[]string{"pool x has had no live collector for 1m0s", "4 jobs of its queue go before it at " + queue},
		},
		"a limit of its account": {
			changed(func(c *diagnose.JobCase) { c.Account.MaxRunning, c.Account.UnderWay = new(2), 2 }),
			[]string{
				"account ada has 2 jobs under way, as many as its limit max_running 2 allows",
				"4 jobs of its queue go before it at " + queue,
			},
		},
		"a limit of its account, and jobs that do not count": {
			changed(func(c *diagnose.JobCase) { c.Account.MaxRunning, c.Account.UnderWay, c.Account.Stranded = new(1), 1, 2 }),
			[]string{
				"account ada has 1 job under way, as many as its limit max_running 1 allows; 2 waiting jobs in task queues without a live collector do not count",
				"4 jobs of its queue go before it at " + queue,
			},
		},
		"a limit that leaves room": {
			changed(func(c *diagnose.JobCase) { c.Account.MaxRunning, c.Account.UnderWay = new(2), 1 }),
			[]string{"4 jobs of its queue go before it at " + queue},
		},
		"strict queues, and a level that it is kept at": {
			changed(func(c *diagnose.JobCase) {
				c.Queue.Earlier, c.Queue.Level, c.Account.FirstLevel = []string{"vip", "single-build"}, 4, 4 // the queue's own is 3
			}),
			[]string{
				"4 jobs of its queue go before it at " + queue,
				"jobs of single-build, vip go first: they are of an earlier level than 4",
				"no job of account ada gets a level before 4",
			},
		},
		"a level that its queue has anyway": {
			changed(func(c *diagnose.JobCase) { c.Account.FirstLevel = 3 }),
			[]string{"4 jobs of its queue go before it at " + queue},
		},
		"collectors with its caches": {
			changed(func(c *diagnose.JobCase) { c.AffinityUntil = now.Add(20 * time.Second) }),
			[]string{
				"4 jobs of its queue go before it at " + queue,
				"collectors that have its cache directories go first until 2026-03-01 12:00:20 UTC; then any other that may run it",
			},
		},
		"caches no longer": {
			changed(func(c *diagnose.JobCase) { c.AffinityUntil = now.Add(-time.Second) }),
			[]string{"4 jobs of its queue go before it at " + queue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := diagnose.Job(c.job, now)
			require.Equal(t, c.want, e.Waits)
			require.Equal(t, "it waits: "+c.want[0], e.Summary)
		})
	}
}

func TestTheEarlierQueuesAreNotAllNamed(t *testing.T) {
	t.Parallel()
	e := diagnose.Job(changed(func(c *diagnose.JobCase) { c.Queue.Earlier = []string{"g", "a", "b", "f", "c", "e", "d"} }), now)
	require.Contains(t, e.Waits, "jobs of a, b, c, d, e, 2 more go first: they are of an earlier level than 3")
}

func TestCollectorVerdicts(t *testing.T) {
	t.Parallel()
	able := diagnose.Collector{Name: "m1", State: bench.CollectorWaiting, Version: "v1", TaskQueues: []string{queue}, LastHeard: now}
	for name, c := range map[string]struct {
		change func(*diagnose.Collector)
		able   bool
		want   []string
	}{
		"idle": {func(*diagnose.Collector) {}, true, []string{"the job was not handed out yet"}},
		"busy": {
			func(c *diagnose.Collector) { c.State, c.Run = bench.CollectorBenchmarking, "bbbbbbbbbbbbbbbb-00000000" },
			true, []string{"it is busy with run bbbbbbbbbbbbbbbb-00000000"},
		},
		"offline": {
			func(c *diagnose.Collector) { c.State, c.LastHeard = bench.CollectorOffline, now.Add(-90*time.Second) },
			true, []string{"it is offline, and was last heard of 1m30s ago"},
		},
		"set aside": {func(c *diagnose.Collector) {
			c.State, c.SetAside = bench.CollectorInactive, "its last 3 runs were disturbed, mostly by steal"
		}, true, []string{"it is set aside until its machine is quiet: its last 3 runs were disturbed, mostly by steal; 'benchloom collector activate m1' lets it take jobs all the same"}},
		"inactive": {func(c *diagnose.Collector) { c.State = bench.CollectorInactive }, true, []string{"it is inactive; 'benchloom collector activate m1' lets it take jobs again"}},
		"draining": {
			func(c *diagnose.Collector) { c.State, c.Run = bench.CollectorDraining, "bbbbbbbbbbbbbbbb-00000000" }, true,
			[]string{"it is draining; 'benchloom collector activate m1' lets it take jobs again", "it is busy with run bbbbbbbbbbbbbbbb-00000000"},
		},
		"out of date":   {func(c *diagnose.Collector) { c.Wanted = "v2" }, true, []string{"it is out of date: version v1, v2 is wanted"}},
		"up to date":    {func(c *diagnose.Collector) { c.Wanted = "v1" }, true, []string{"the job was not handed out yet"}},
		"another queue": {func(c *diagnose.Collector) { c.TaskQueues = []string{"bench/other"} }, false, []string{"it takes jobs from bench/other, not from " + queue}},
		"what it lacks": {
			func(c *diagnose.Collector) {
				c.TaskQueues, c.Lacks = []string{"bench/other"}, []string{"it has no device gpu", "its type is vm, not hw"}
			},
			false, []string{"it has no device gpu", "its type is vm, not hw"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := able
			c.change(&one)
			e := diagnose.Job(changed(func(x *diagnose.JobCase) { x.Collectors = []diagnose.Collector{one} }), now)
			require.Len(t, e.Collectors, 1)
			require.Equal(t, c.want, e.Collectors[0].WhyNot)
			require.Equal(t, c.able, e.Collectors[0].Able)
		})
	}
}

// A slot of a shared host may have to wait for its neighbours.
func TestASlotOfASharedHost(t *testing.T) {
	t.Parallel()
	slot := diagnose.Collector{Name: "big-c1-1", Host: "big", State: bench.CollectorWaiting, TaskQueues: []string{queue}}
	busy := diagnose.Collector{Name: "big-c2-1", Host: "big", State: bench.CollectorBenchmarking, Run: "bbbbbbbbbbbbbbbb-00000000", TaskQueues: []string{"bench/other"}}
	other := diagnose.Collector{Name: "m1", State: bench.CollectorBenchmarking, Run: "cccccccccccccccc-00000000", TaskQueues: []string{queue}}
	e := diagnose.Job(changed(func(c *diagnose.JobCase) {
		c.Status, c.Collectors = bench.JobHandedOut, []diagnose.Collector{slot, busy, other}
	}), now)
	require.Equal(t, []string{"1 job is under way beside it on host big: it takes a job only while that fits the host's memory"}, e.Collectors[0].WhyNot)
	require.True(t, e.Collectors[0].Able)
	alone := diagnose.Job(changed(func(c *diagnose.JobCase) {
		c.Status, c.Collectors = bench.JobHandedOut, []diagnose.Collector{slot, other}
	}), now)
	require.Empty(t, alone.Collectors[0].WhyNot)
}

func TestARunningJob(t *testing.T) {
	t.Parallel()
	run := bench.RunID("aaaaaaaaaaaaaaaa-00000002")
	e := diagnose.Job(changed(func(c *diagnose.JobCase) {
		c.Status, c.HandedOut = bench.JobInProgress, now.Add(-time.Hour)
		c.Runs = []diagnose.Run{
			{
				ID: "aaaaaaaaaaaaaaaa-00000001", Number: 1, Reason: bench.Scheduled, SizeClass: 1, Outcome: bench.RunFailure,
				Started: now.Add(-100 * time.Second), Finished: now.Add(-40 * time.Second), Probe: true, Timeout: time.Minute,
			},
			{ID: run, Number: 2, Reason: bench.Escalation, Collector: "m1", SizeClass: 4, Started: now.Add(-30 * time.Second)},
		}
		c.Collectors = []diagnose.Collector{
			{Name: "m1", State: bench.CollectorBenchmarking, Run: run, TaskQueues: []string{"bench/other"}},
			{Name: "m2", State: bench.CollectorWaiting, TaskQueues: []string{queue}},
		}
	}), now)
	require.Equal(t, "run aaaaaaaaaaaaaaaa-00000002 is under way on collector m1 since 2026-03-01 11:59:30 UTC", e.Summary)
	require.Empty(t, e.Waits)
	require.Zero(t, e.Queue.Position)
	require.Equal(t, []diagnose.CollectorVerdict{
		{Name: "m1", State: bench.CollectorBenchmarking, Able: true, WhyNot: []string{}, Carries: run},
		{Name: "m2", State: bench.CollectorWaiting, Able: true, WhyNot: []string{}},
	}, e.Collectors)
	require.Equal(t, diagnose.Cost{CoreSeconds: 60 + 120, Wasted: 60}, e.Cost)
	require.Equal(t, []float64{60, 120}, []float64{e.Runs[0].CoreSeconds, e.Runs[1].CoreSeconds})
	require.Equal(t, 60.0, e.Runs[0].TimeoutSeconds)
	require.True(t, e.Runs[0].Probe)
}

func TestAJobThatHasEnded(t *testing.T) {
	t.Parallel()
	e := diagnose.Job(changed(func(c *diagnose.JobCase) {
		c.Status, c.Message = bench.JobFailure, "1 of 2 test cases have no result"
		c.Collectors = []diagnose.Collector{{Name: "m1"}}
	}), now)
	require.Equal(t, "it has ended: failure, 1 of 2 test cases have no result", e.Summary)
	require.Empty(t, e.Waits)
	require.Nil(t, e.Queue)
	require.Empty(t, e.Collectors)
}

// Whatever is known of an open job without a run: it waits for something, in words,
// and every collector that does not take it has a reason or is about to.
func TestEveryWaitHasAReason(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	states := []bench.CollectorState{
		bench.CollectorInactive, bench.CollectorWaiting, bench.CollectorBenchmarking, bench.CollectorDraining, bench.CollectorOffline,
	}
	for range 3000 {
		coin := func() bool { return random.IntN(2) == 0 }
		c := changed(func(c *diagnose.JobCase) {
			c.Status = []bench.JobStatus{bench.JobQueued, bench.JobHandedOut, bench.JobInProgress}[random.IntN(3)]
			c.Queue.Before, c.Queue.HandedOut = random.IntN(3), random.IntN(3)
			c.Waiters = c.Waiters[:random.IntN(2)]
			if coin() {
				c.Account.MaxRunning, c.Account.UnderWay = new(random.IntN(3)), random.IntN(3)
			}
		})
		for range random.IntN(4) {
			one := diagnose.Collector{Name: "m", State: states[random.IntN(len(states))], TaskQueues: []string{queue}, LastHeard: now}
			if one.State == bench.CollectorBenchmarking || one.State == bench.CollectorDraining {
				one.Run = "bbbbbbbbbbbbbbbb-00000000"
			}
			if coin() {
				one.TaskQueues[0] = "bench/other"
			}
			c.Collectors = append(c.Collectors, one)
		}
		e := diagnose.Job(c, now)
		require.NotEmpty(t, e.Waits)
		require.Len(t, e.Collectors, len(c.Collectors))
		for i, v := range e.Collectors {
			idle := c.Collectors[i].State == bench.CollectorWaiting && v.Able
			require.Equal(t, idle && c.Status != bench.JobQueued, len(v.WhyNot) == 0, "%+v", v)
		}
	}
}
