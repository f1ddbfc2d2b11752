package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
)

// lone is a collector process without a supervisor.
type lone struct {
	name    string
	command *exec.Cmd
	exited  chan error
}

// startCollector starts a collector of size class 1 in a pool and waits until it
// takes jobs.
func (s *stack) startCollector(t *testing.T, name, pool string, flags ...string) *lone {
	t.Helper()
	c := s.launchCollector(t, name, pool, flags...)
	s.awaitCollector(t, name, bench.CollectorWaiting)
	return c
}

// accounts makes sure that the machine has accounts for all isolated collectors of tests: 'up'
// makes those of its own only.
func accounts(t *testing.T, program string) {
	t.Helper()
	out, err := exec.Command(program, "collector", "setup", "--accounts", "24").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// launchCollector starts a collector as startCollector does, without waiting.
func (s *stack) launchCollector(t *testing.T, name, pool string, flags ...string) *lone {
	t.Helper()
	if isolating() && os.Geteuid() == 0 {
		accounts(t, s.bin)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer log.Close() // the process has its own
	c := &lone{name: name, exited: make(chan error, 1)}
	c.command = exec.Command(s.bin, append([]string{"collector", "--name", name, "--pool", pool, "--size-class", "1", "--co-located",
		"--state-dir", filepath.Join(filepath.Dir(s.dir), name), "--api", s.up.Addresses[up.AddressAPI],
		"--token-file", filepath.Join(s.dir, "tokens", up.TokenCollector)}, flags...)...)
	c.command.Stdout, c.command.Stderr = log, log
	c.command.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.up.Addresses[up.AddressTemporal], "TEMPORAL_NAMESPACE=benchloom")
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, c.command.Start())
	go func() { c.exited <- c.command.Wait(); close(c.exited) }()
	t.Cleanup(func() {
		_ = c.command.Process.Signal(os.Interrupt)
		select {
		case <-c.exited:
		case <-time.After(patience):
			_ = c.command.Process.Kill()
		}
	})
	return c
}

func (s *stack) awaitCollector(t *testing.T, name string, state bench.CollectorState) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, err := s.api.Collectors(t.Context())
		return err == nil && slices.ContainsFunc(all, func(c apiclient.Collector) bool { return c.Name == name && c.State == state })
	}, patience, 50*time.Millisecond, "collector %s is not %s", name, state)
}

// reconcile runs the reconciliation without waiting for its Schedule.
func reconcile(ctx context.Context, temporal client.Client) error {
	return temporal.ScheduleClient().GetHandle(ctx, protocol.ReconcileScheduleID).Trigger(ctx, client.ScheduleTriggerOptions{})
}

// heldSuite makes a shell suite whose benchmarks run until a file is removed.
func heldSuite(t *testing.T) (shell shellSuite, release func()) {
	t.Helper()
	shell = newShellSuite(t, 1)
	held := filepath.Join(shell.artifacts, "held")
	require.NoError(t, os.WriteFile(held, nil, 0o644))
	shell.write(t, "count.sh", `echo "$2 $(basename "$1")" >> "$3"
while [ -e "$1/held" ] && [ -e "`+held+`" ]; do sleep 0.05; done
`)
	return shell, func() { _ = os.Remove(held) }
}

func hold(t *testing.T, shell shellSuite, tag string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(shell.artifacts, tag, "held"), nil, 0o644))
}

// The only collector of a pool takes no more jobs. Its waiting jobs, rows as well as
// tasks in Temporal, move to the other pool and never back; its running job stays.
func TestWaitingJobsMoveToAnotherPool(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	temporal := s.temporal(t)
	shell, release := heldSuite(t)
	defer release()
	tags := []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"}
	for _, tag := range tags {
		shell.artifact(t, tag, 1)
	}
	hold(t, shell, tags[0])
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{FailoverAfter: "1s", Queue: bench.QueuePolicy{MaxInProgress: bench.SlotCount(len(tags))}})

	ids := make([]bench.RequestID, len(tags))
	for i, tag := range tags {
		ids[i] = s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag}).ID
		if i == 0 {
			s.awaitCollector(t, "local-1", bench.CollectorBenchmarking)
		}
	}
	job := func(i int) apiclient.Job {
		t.Helper()
		d, err := s.api.Request(t.Context(), string(ids[i]))
		require.NoError(t, err)
		if len(d.Jobs) == 0 {
			return apiclient.Job{}
		}
		require.Len(t, d.Jobs, 1)
		return d.Jobs[0]
	}
	require.Eventually(t, func() bool {
		queued, handedOut := 0, 0
		for i := range ids {
			switch job(i).Status {
			case bench.JobQueued:
				queued++
			case bench.JobHandedOut:
				handedOut++
			}
		}
		return queued > 0 && handedOut == inTemporal // the running job does not count
	}, patience, 50*time.Millisecond, "jobs must wait as rows and in Temporal")

	// No other pool can take them: they stay, with this reason.
	_, code := s.run(t, "collector", "drain", "local-1")
	require.Zero(t, code)
	require.Contains(t, job(1).Waits, "no other pool that could take the job has one either")
	s.startCollector(t, "spare-1", "spare")
	require.Contains(t, job(1).Waits, "the job moves to pool "+bench.Pool{Target: job(1).Target, SizeClass: 1, Name: "spare"}.TaskQueue())

	for i := 1; i < len(ids); i++ {
		require.Eventually(t, func() bool {
			return job(i).MovedFrom != "" || reconcile(t.Context(), temporal) != nil
		}, ended, 200*time.Millisecond, "the job does not move")
		require.NotEmpty(t, job(i).MovedFrom)
		d := s.await(t, ids[i], ended)
		requireSuccess(t, d.Outcome, d)
		require.Len(t, d.Runs, 1, "a move does not count as a run")
		require.Equal(t, "spare-1", d.Runs[0].Collector)
	}
	require.Empty(t, job(0).MovedFrom, "a running job stays")
	_, code = s.run(t, "collector", "activate", "local-1")
	require.Zero(t, code)
	release()
	d := s.await(t, ids[0], ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, d.Runs, 1)
	require.Equal(t, "local-1", d.Runs[0].Collector)
	s.requireCollections(t, "shell", 3)
}

// When a collector dies while it measures, the other one of its pool runs the job
// again without anyone's help. What was sampled until then stays, as a part.
func TestLongAJobOfADeadCollectorIsRetriedElsewhere(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	shell, release := heldSuite(t)
	defer release()
	shell.artifact(t, "1.0.0", 1)
	hold(t, shell, "1.0.0")
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	pair := map[string]*lone{"pair-1": s.startCollector(t, "pair-1", "pair"), "pair-2": s.startCollector(t, "pair-2", "pair")}

	// A pool with two collectors is chosen before a pool with one.
	id := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"}).ID
	require.Eventually(t, func() bool { return shell.executions(t)["count-1 1.0.0"] == 1 }, ended, 20*time.Millisecond, "nothing is measured")
	d, err := s.api.Request(t.Context(), string(id))
	require.NoError(t, err)
	require.Len(t, d.Runs, 1)
	victim := pair[d.Runs[0].Collector]
	require.NotNil(t, victim, d.Runs[0].Collector)
	require.Eventually(t, func() bool {
		p, err := s.api.Profile(t.Context(), d.Runs[0].ID)
		return err == nil && p.State == apiclient.ProfileRecording
	}, ended, 100*time.Millisecond, "no samples arrive")
	killed := time.Now()
	require.NoError(t, victim.command.Process.Kill())
	release()

	d = s.await(t, id, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, d.Runs, 2)
	first, second := d.Runs[0], d.Runs[1]
	require.Equal(t, bench.RunLost, first.Outcome)
	require.Equal(t, bench.Retry, second.Reason)
	require.NotEqual(t, first.Collector, second.Collector)
	require.Contains(t, pair, second.Collector)
	require.True(t, second.StartedAt.After(killed))
	require.Less(t, second.StartedAt.Sub(killed), patience, "noticed by the heartbeat timeout, dispatched at once")
	s.requireCollections(t, "shell", 3)

	profiles := make([]apiclient.Profile, 2)
	require.Eventually(t, func() bool {
		for i, run := range d.Runs {
			var err error
			if profiles[i], err = s.api.Profile(t.Context(), run.ID); err != nil || !profiles[i].Over {
				return false
			}
		}
		return true
	}, ended, 200*time.Millisecond)
	for i := range profiles {
		require.Equal(t, apiclient.ProfileFinished, profiles[i].State)
		require.Len(t, profiles[i].Attempts, 1)
	}
	require.True(t, profiles[0].Attempts[0].Partial)
	require.NotEqual(t, profiles[0].Attempts[0].Attempt, profiles[1].Attempts[0].Attempt)
	metrics, err := s.api.ProfileMetrics(t.Context(), second.ID, 0)
	require.NoError(t, err)
	// The end of a run waits a second for the last samples, which is not always enough on a busy machine.
	if !profiles[1].Attempts[0].Partial {
		require.Len(t, metrics.Summaries, 1)
		require.Len(t, metrics.Summaries[0].Commands, 3, "measured commands")
	}
	sent := make(map[string]bool)
	for _, b := range metrics.Batches {
		key := fmt.Sprint(b.Series, b.Sequence)
		require.False(t, sent[key], "%s is there twice", key)
		sent[key] = true
		require.Equal(t, b.Series.Unit(), b.Unit)
		require.Len(t, b.Times, len(b.Values))
	}
}
