package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/fairshare"
)

func set[T any](v T) *T { return &v }

func TestQueuesAreConfiguredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wrong := apiclient.QueueConfig{
		Queues:   []fairshare.QueueSetting{{Name: "single-build", Weight: set(30.0)}, {Name: "bisect", Weight: set(0.0)}},
		Accounts: []fairshare.AccountLimit{{Account: "*", MaxRunning: set(0)}},
	}
	_, err := b.admin.ApplyQueues(t.Context(), wrong)
	p := problemOf(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, p.Status)
	require.Contains(t, p.Detail, "nothing was changed: the configuration has 2 errors")
	require.ErrorContains(t, err, `weight 0 of queue "bisect"; use 0.1 to 1000`)
	require.ErrorContains(t, err, "max_running 0; use 1 to")
	_, err = b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{})
	require.ErrorContains(t, err, "names no queue and no account")
	_, err = b.writer.ApplyQueues(t.Context(), wrong)
	require.ErrorIs(t, err, apiclient.ErrForbidden)
	_, err = b.writer.SetWeight(t.Context(), "user:ada", apiclient.QueueWeight{Weight: 2})
	require.ErrorIs(t, err, apiclient.ErrForbidden)

	list, err := b.nobody.Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Queues, 2, "vip and idle")
	require.Empty(t, list.Accounts)

	right := apiclient.QueueConfig{
		Queues: []fairshare.QueueSetting{
			{Name: "single-build", Weight: set(30.0)}, {Name: "urgent", Class: fairshare.Strict, Level: set(2)}, {Name: "user:ada", Weight: set(0.3)},
		},
		Accounts: []fairshare.AccountLimit{{Account: "*", MaxRunning: set(4), MaxQueued: set(100), FirstLevel: 2}},
	}
	try := right
	try.DryRun = true
	done, err := b.admin.ApplyQueues(t.Context(), try)
	require.NoError(t, err)
	require.True(t, done.DryRun)
	require.Equal(t, "changed: single-build, urgent, user:ada, the limit of *", done.Message)
	done, err = b.admin.ApplyQueues(t.Context(), right)
	require.NoError(t, err)
	require.True(t, done.Changed)
	done, err = b.admin.ApplyQueues(t.Context(), right)
	require.NoError(t, err)
	require.False(t, done.Changed)

	list, err = b.nobody.Queues(t.Context())
	require.NoError(t, err)
	var names []string
	for _, q := range list.Queues {
		names = append(names, q.Name)
	}
	require.Equal(t, []string{"vip", "urgent", "single-build", "user:ada", "idle"}, names)
	require.Equal(t, "while it has work, nothing of idle, single-build, user:ada starts", list.Queues[1].Warning)
	require.Equal(t, "ada", list.Queues[1].UpdatedBy)
	require.Equal(t, 0.3, list.Queues[3].Weight)
	require.Len(t, list.Accounts, 1)
	require.Equal(t, 4, *list.Accounts[0].MaxRunning)

	// One weight.
	done, err = b.admin.SetWeight(t.Context(), "user:ada", apiclient.QueueWeight{Weight: 2.5, Act: apiclient.Act{Reason: "the release is near"}})
	require.NoError(t, err)
	require.Equal(t, "it was 0.3", done.Message)
	_, err = b.admin.SetWeight(t.Context(), "user:ada", apiclient.QueueWeight{Weight: 1e9})
	require.ErrorContains(t, err, "weight 1e+09 of queue")
	_, err = b.admin.SetWeight(t.Context(), "urgent", apiclient.QueueWeight{Weight: 2})
	require.Equal(t, "urn:benchloom:strict-queue", problemOf(t, err).Type)
	audit, err := b.reader.Audit(t.Context(), apiclient.AuditQuery{Subject: "user:ada"})
	require.NoError(t, err)
	require.Len(t, audit.Operations, 1)
	require.Equal(t, "queue set-weight", audit.Operations[0].Action)
	require.Equal(t, "the release is near", audit.Operations[0].Reason)

	// What is not named stays, unless all of it is replaced.
	done, err = b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Queues: []fairshare.QueueSetting{{Name: "urgent"}}, Replace: true})
	require.NoError(t, err)
	require.Equal(t, "changed: urgent, single-build (removed), user:ada (removed), the limit of * (removed)", done.Message)
	list, err = b.nobody.Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Queues, 3)
	require.Empty(t, list.Accounts)
}

func TestANewLevelReachesJobsWaitingForACollector(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	_, err := b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Queues: []fairshare.QueueSetting{{Name: "project:go", Class: fairshare.Strict, Level: set(2)}}})
	require.NoError(t, err)
	require.Equal(t, 2, b.workflows.levels[j.key])
	stored, err := b.store.Job(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, 2, stored.Priority)
	list, err := b.nobody.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, apiclient.FairQueue{
		Name: "project:go", Class: fairshare.Strict, Weight: 1, Level: 2, WaitObjective: 900, HandedOut: 1, Warning: "while it has work, nothing of idle starts",
		UpdatedBy: "ada", UpdatedAt: list.Queues[1].UpdatedAt,
	}, list.Queues[1])

	// A limit does the same; it is the later level that counts.
	_, err = b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Accounts: []fairshare.AccountLimit{{Account: "*", FirstLevel: 4}}})
	require.NoError(t, err)
	require.Equal(t, 4, b.workflows.levels[j.key])
}

func TestJobsWaitInTheQueueThatIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	_, err := b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{
		Queues: []fairshare.QueueSetting{{Name: "single-build"}, {Name: "user:rita"}},
		Accounts: []fairshare.AccountLimit{
			{Account: "*", FirstLevel: 2}, {Account: "wanda", Branch: "dev", FirstLevel: 4}, {Account: "ada", MaxQueued: set(3)},
		},
	})
	require.NoError(t, err)
	command := &apiclient.Command{Argv: []string{"true"}}
	submit := func(c *apiclient.Client, queue, branch string) (apiclient.RequestDetail, error) {
		r, err := c.CreateRequest(t.Context(), apiclient.NewRequest{Command: command, Branch: branch, PlacementWish: apiclient.PlacementWish{Queue: queue}})
		if err != nil {
			return apiclient.RequestDetail{}, err
		}
		return c.Request(t.Context(), string(r.ID))
	}
	for queue, want := range map[string]string{"": "user:wanda", "user:wanda": "user:wanda", "single-build": "single-build", "project:go": "project:go", "idle": "idle"} {
		d, err := submit(b.writer, queue, "")
		require.NoError(t, err)
		require.Equal(t, queue, d.Queue)
		require.Equal(t, want, d.Jobs[0].Queue)
	}
	for _, wrong := range []struct{ queue, branch, kind, text string }{
		{"bisect", "", "unknown-queue", `there is no queue "bisect"; the queues are user:wanda (yours), vip, `},
		{"user:rita", "", "not-your-queue", "leave the queue out for your own, user:wanda"},
		{"project:rust", "", "unknown-project", `there is no project "rust"`},
		{"vip", "", "queue-too-early", "queue vip goes at level 1, and jobs of wanda go at level 2 at the earliest"},
		{"single-build", "dev", "queue-too-early", "queue single-build goes at level 3, and jobs of wanda on branch dev go at level 4 at the earliest"},
		{"A B", "", "invalid", "lower-case letters"},
		{"", "a b", "invalid", `branch "a b"`},
	} {
		_, err := submit(b.writer, wrong.queue, wrong.branch)
		require.Equal(t, "urn:benchloom:"+wrong.kind, problemOf(t, err).Type)
		require.ErrorContains(t, err, wrong.text)
	}
	// One's own queue is no way around: its jobs go later.
	d, err := submit(b.writer, "", "dev")
	require.NoError(t, err)
	require.Equal(t, "dev", d.Branch)

	// A file of commands is taken whole or not at all.
	batch := func(queues ...string) error {
		lines := make([]apiclient.NewJob, len(queues))
		for i, q := range queues {
			lines[i] = apiclient.NewJob{Command: *command, PlacementWish: apiclient.PlacementWish{Queue: q}}
		}
		_, err := b.admin.CreateBatch(t.Context(), apiclient.NewRequest{IdempotencyKey: strings.Join(queues, " ")}, slices.Values(lines))
		return err
	}
	require.ErrorContains(t, batch("idle", "user:rita", "bisect"), "2 of 3 jobs cannot be taken")

	// No more may wait than the limit allows. Some of them are handed out at once.
	err = batch("idle", "idle", "idle", "idle", "idle", "idle", "idle", "idle")
	full := problemOf(t, err)
	require.Equal(t, http.StatusTooManyRequests, full.Status)
	require.Equal(t, "urn:benchloom:too-many-waiting", full.Type)
	require.Contains(t, full.Detail, "0 jobs of ada wait already, and at most 3 may (max_queued), so 8 more cannot be added")
	require.NoError(t, batch("idle", "idle", "idle"))
	require.NoError(t, batch("idle", "idle", "idle"), "the same key again")
	for range 20 {
		if _, err = submit(b.admin, "", ""); err != nil {
			break
		}
	}
	require.Equal(t, "urn:benchloom:too-many-waiting", problemOf(t, err).Type)
	list, err := b.nobody.Queues(t.Context())
	require.NoError(t, err)
	for _, a := range list.Accounts {
		if a.Account == "ada" {
			require.LessOrEqual(t, a.Queued, 3)
		}
	}
}

// Opening something again is no way around limits of accounts.
func TestLimitsApplyToRepeatedJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	_, err := b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{
		Accounts: []fairshare.AccountLimit{{Account: "wanda", FirstLevel: 3, MaxQueued: set(1)}},
	})
	require.NoError(t, err)
	b.register(t, "c1")
	vip := apiclient.NewRequest{Project: "go", Tag: "1.0.0", PlacementWish: apiclient.PlacementWish{Queue: "vip"}}
	ended := func(c *apiclient.Client, r apiclient.NewRequest) string {
		made, err := c.CreateRequest(t.Context(), r)
		require.NoError(t, err)
		_, err = c.CancelRequest(t.Context(), string(made.ID), apiclient.Act{})
		require.NoError(t, err)
		return string(made.ID)
	}
	of := ended(b.admin, vip)
	_, err = b.writer.RetryRequest(t.Context(), of, because)
	p := problemOf(t, err)
	require.Equal(t, "urn:benchloom:queue-too-early", p.Type)
	require.Contains(t, p.Detail, "jobs in queue vip go at level 1, but jobs of wanda may go at level 3 at the earliest")
	_, err = b.admin.RetryRequest(t.Context(), of, because)
	require.NoError(t, err)

	// One request waits, and is as many as may: the same again is no other one.
	mine := ended(b.writer, apiclient.NewRequest{Project: "go", Tag: "2.0.0"})
	second := apiclient.NewRequest{Project: "go", Tag: "3.0.0"}
	for range 2 {
		_, err = b.writer.CreateRequest(t.Context(), second)
		require.NoError(t, err)
	}
	for _, asked := range []func() error{
		func() error { _, err := b.writer.RetryRequest(t.Context(), mine, because); return err },
		func() error {
			_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "4.0.0"})
			return err
		},
	} {
		p = problemOf(t, asked())
		require.Equal(t, "urn:benchloom:too-many-waiting", p.Type)
		require.Contains(t, p.Detail, "1 jobs of wanda wait already, and at most 1 may (max_queued)")
	}
}
