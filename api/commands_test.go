package api_test

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// batch is a number of jobs, each of its own words.
func batch(n int) iter.Seq[apiclient.NewJob] {
	return func(yield func(apiclient.NewJob) bool) {
		for i := range n {
			j := apiclient.NewJob{Name: fmt.Sprint("job ", i+1), Command: apiclient.Command{Argv: []string{"echo", fmt.Sprint(i)}}}
			if !yield(j) {
				return
			}
		}
	}
}

func TestABatchIsOneRequestWithItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	const n = 1200
	r, err := b.writer.CreateBatch(t.Context(), apiclient.NewRequest{IdempotencyKey: "nightly"}, batch(n))
	require.NoError(t, err)
	require.True(t, r.Created)
	require.Equal(t, n, r.Batch)
	require.Equal(t, apiclient.AdHocProject, r.Project)
	require.Equal(t, bench.InProgress, r.Status)
	require.Eventually(t, func() bool { return b.workflows.startedJobs() == 4 }, 2*time.Minute, 5*time.Millisecond, "its first jobs are handed out, and start its workflow")

	d, err := b.nobody.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	require.Equal(t, apiclient.Progress{Jobs: n, TestCases: n}, d.Progress)
	require.Equal(t, n, d.JobsTotal)
	require.Len(t, d.Jobs, 100)

	// Page by page, all of them are there in their order.
	var names []string
	for query := (apiclient.JobQuery{Limit: 500}); ; {
		page, err := b.nobody.RequestJobs(t.Context(), string(r.ID), query)
		require.NoError(t, err)
		for _, j := range page.Jobs {
			names = append(names, j.Name)
			require.Equal(t, []string{"echo", fmt.Sprint(j.Place - 1)}, j.Command)
		}
		if query.After = page.Next; query.After == "" {
			break
		}
	}
	require.Len(t, names, n)
	require.Equal(t, []string{"job 1", "job 2"}, names[:2])
	require.Equal(t, fmt.Sprint("job ", n), names[n-1])
	none, err := b.nobody.RequestJobs(t.Context(), string(r.ID), apiclient.JobQuery{Status: bench.JobFailure})
	require.NoError(t, err)
	require.Empty(t, none.Jobs)

	// The same key gives the same request, and never another one.
	again, err := b.writer.CreateBatch(t.Context(), apiclient.NewRequest{IdempotencyKey: "nightly"}, batch(n))
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, r.ID, again.ID)
	_, err = b.writer.CreateBatch(t.Context(), apiclient.NewRequest{IdempotencyKey: "nightly"}, batch(n-1))
	require.ErrorContains(t, err, `the idempotency key "nightly" exists already with another set of jobs`)
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
}

func TestABatchIsCancelledByItsRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	r, err := b.writer.CreateBatch(t.Context(), apiclient.NewRequest{}, batch(300))
	require.NoError(t, err)
	cancelled, err := b.writer.CancelRequest(t.Context(), string(r.ID), apiclient.Act{Reason: "a mistake"})
	require.NoError(t, err)
	require.Equal(t, 300, cancelled.Operation.Jobs)
	d, err := b.nobody.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	require.Equal(t, bench.Cancelled, d.Outcome)
	require.Equal(t, apiclient.Progress{Jobs: 300, JobsDone: 300, TestCases: 300}, d.Progress)
}

func TestAJobOfABatchMayHaveItsOwnSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	larger := registration("c2")
	larger.SizeClass, larger.MachineID = 4, "machine-of-c2"
	_, err := b.collector.RegisterCollector(t.Context(), larger)
	require.NoError(t, err)
	jobs := []apiclient.NewJob{
		{Command: apiclient.Command{Argv: []string{"a"}, Env: map[string]string{"A": "b"}}, Timeout: "90s"},
		{Command: apiclient.Command{Argv: []string{"a"}}, PlacementWish: apiclient.PlacementWish{SizeClass: 4}},
	}
	r, err := b.writer.CreateBatch(t.Context(), apiclient.NewRequest{PlacementWish: apiclient.PlacementWish{SizeClass: 2}}, slices.Values(jobs))
	require.NoError(t, err)
	stored, err := b.store.RequestJobs(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, []bench.SizeClass{2, 4}, []bench.SizeClass{stored[0].SizeClass, stored[1].SizeClass})
	require.Equal(t, []int{90, 1800}, []int{stored[0].Command.TimeoutSeconds, stored[1].Command.TimeoutSeconds})
	require.Equal(t, map[string]string{"A": "b"}, stored[0].Command.Env)
	require.Equal(t, "user:wanda", stored[0].Queue)
}

// What a project says about timeouts holds for commands that are submitted to it.
func TestAProjectBoundsTheTimeoutsOfItsCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	submit := func(seconds int) (apiclient.Request, error) {
		return b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "tools", Command: &apiclient.Command{Argv: []string{"true"}, TimeoutSeconds: seconds}})
	}
	for _, c := range []struct {
		size    bench.SizePolicy
		longest int
		usual   int
		refusal string
	}{
		{bench.SizePolicy{}, 7200, 1800, "timeout 2h0m1s: use one above 0 of at most 2h0m0s"},
		{bench.SizePolicy{MaximumTimeout: "1m", DefaultTimeout: "1500ms", Minimum: "1s"}, 60, 2, "timeout 1m1s: use one above 0 of at most 1m0s"},
	} {
		_, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "tools", Config: bench.ProjectConfig{Size: c.size}}, false)
		require.NoError(t, err)
		for asked, want := range map[int]int{c.longest: c.longest, 0: c.usual} {
			r, err := submit(asked)
			require.NoError(t, err)
			require.Equal(t, want, r.Command.TimeoutSeconds)
		}
		_, err = submit(c.longest + 1)
		require.ErrorContains(t, err, c.refusal)
		require.ErrorContains(t, err, "raise size.maximum_timeout")
		long := []apiclient.NewJob{{Command: apiclient.Command{Argv: []string{"true"}, TimeoutSeconds: c.longest + 1}}}
		_, err = b.writer.CreateBatch(t.Context(), apiclient.NewRequest{Project: "tools"}, slices.Values(long))
		require.ErrorContains(t, err, "body.jobs[0]: "+c.refusal)
	}
	_, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "tools", Config: bench.ProjectConfig{Size: bench.SizePolicy{MaximumTimeout: "25h"}}}, false)
	require.ErrorContains(t, err, "maximum_timeout 25h0m0s: use at most 24h0m0s")
}

func TestAnInvalidBatchIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	const good = `{"argv":["true"]}`
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"no jobs", `{"jobs":[]}`, 422, "jobs is empty"},
		{"no list", `{"jobs":{"argv":["true"]}}`, 422, "jobs is no list"},
		{"no object", `{"jobs":[` + good + `,7]}`, 422, `body.jobs[1]: it is a JSON number, not an object: write {"argv": ["program", "argument"]}`},
		{"no JSON", `{"jobs":[` + good + `,{]}`, 400, "not valid JSON"},
		{"cut off", `{"jobs":[` + good, 400, "not valid JSON"},
		{"unknown field", `{"jobs":[{"argv":["true"],"cpu":2}]}`, 422, `body.jobs[0]: there is no field "cpu"; a job has name, argv, env,`},
		{"no program", `{"jobs":[` + good + `,{"name":"x"}]}`, 422, "body.jobs[1]: the command names no program"},
		{"wrong type", `{"jobs":[{"argv":"true"}]}`, 422, `argv is a JSON string; write a list of texts`},
		{"timeout", `{"jobs":[{"argv":["true"],"timeout":"1.5s"}]}`, 422, `timeout "1.5s": use whole seconds from 1s to 24h`},
		{"two timeouts", `{"jobs":[{"argv":["true"],"timeout":"1s","timeout_seconds":2}]}`, 422, "leave one out"},
		{"negative", `{"jobs":[{"argv":["true"],"iterations":-1}]}`, 422, "iterations is -1; use 1 to 1000"},
		{"name", `{"jobs":[{"argv":["true"],"name":"a\nb"}]}`, 422, "holds control characters"},
		{"target", `{"jobs":[{"argv":["true"],"target":"linux"}]}`, 422, `target "linux": write a target tuple`},
		{"class", `{"jobs":[{"argv":["true"],"size_class":-3}]}`, 422, "size class"},
		{"nobody", `{"jobs":[{"argv":["true"],"size_class":64}]}`, 422, "size class 64: registered are"},
		{"more behind", `{"jobs":[` + good + `]} {}`, 400, "more behind"},
		{"both", `{"command":` + good + `,"jobs":[` + good + `]}`, 422, "both a command and jobs"},
		{"twice", `{"jobs":[` + good + `],"jobs":[` + good + `]}`, 422, "the field jobs is there twice"},
		{"tag", `{"tag":"1.26.0","jobs":[` + good + `]}`, 422, "a batch of commands measures no artifact"},
		{"release", `{"type":"release","jobs":[` + good + `]}`, 422, "not with a command"},
		{"head", `{"tagg":"1","jobs":[` + good + `]}`, 422, "body.tagg: unexpected property"},
		{"project", `{"project":"nobody","jobs":[` + good + `]}`, 422, "there is no project"},
		{"too many", `{"jobs":[` + strings.Repeat(good+",", 100_000) + good + `]}`, 422, "more than 100000 jobs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := b.send(t, api.RoleWriter, http.MethodPost, "/api/v1/requests", c.body)
			require.Equal(t, c.status, r.status, r.body)
			p := r.problem(t)
			require.Contains(t, p.Error(), c.want)
		})
	}
	r := b.send(t, api.RoleWriter, http.MethodPost, "/api/v1/requests", `{"jobs":[`+strings.Repeat("{},", 49)+good+`]}`)
	p := r.problem(t)
	require.Contains(t, p.Detail, "49 of 50 jobs cannot be taken; correct what is named below (the first 20 of them)")
	require.Len(t, p.Errors, 20)
	list, err := b.nobody.Requests(t.Context(), apiclient.RequestQuery{})
	require.NoError(t, err)
	require.Empty(t, list.Requests)
}

func TestABatchIsNotUnpackedWithoutBounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.send(t, api.RoleWriter, http.MethodPost, "/api/v1/requests", `{"jobs":[`, "Content-Encoding", "gzip")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.problem(t).Detail, "not valid gzip")
	r = b.send(t, api.RoleWriter, http.MethodPost, "/api/v1/requests", `{"jobs":[`, "Content-Encoding", "br")
	require.Equal(t, http.StatusUnsupportedMediaType, r.status)
	r = b.send(t, api.RoleWriter, http.MethodPost, "/api/v1/requests", bombOf(t, `{"jobs":[{"argv":["`, apiclient.MaxBatchBytes), "Content-Encoding", "gzip")
	require.Equal(t, http.StatusRequestEntityTooLarge, r.status)
	require.Contains(t, r.problem(t).Detail, "larger than 64 MB")
	r = b.send(t, "", http.MethodPost, "/api/v1/requests", `{"jobs":[]}`)
	require.Equal(t, http.StatusUnauthorized, r.status)
}

func TestAcceptedRequestsStayAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	_, err := b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Accounts: []fairshare.AccountLimit{{Account: "*", MaxQueued: set(5)}}})
	require.NoError(t, err)
	on := func(machine string) apiclient.PlacementWish {
		return apiclient.PlacementWish{Constraints: bench.ConstraintSpec{Machines: []string{machine}}}
	}
	echo := apiclient.Command{Argv: []string{"echo"}}
	calls := map[string]apiclient.NewRequest{
		"a suite":   {Project: "go", Type: bench.AdHoc, Tag: "1.26.0", IdempotencyKey: "k1"},
		"a command": {Command: &echo, IdempotencyKey: "k2", PlacementWish: on("c1")},
		"a batch":   {IdempotencyKey: "k3", Jobs: []apiclient.NewJob{{Command: echo, PlacementWish: on("c1")}, {Command: echo}}},
	}
	first := map[string]bench.RequestID{}
	for name, call := range calls {
		r, err := b.writer.CreateRequest(t.Context(), call)
		require.NoError(t, err, name)
		first[name] = r.ID
	}
	for range 20 { // some of them are handed out
		if _, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &echo}); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "max_queued", "no more may wait")
	require.NoError(t, b.store.RemoveCollector(t.Context(), "c1"))
	for name, call := range calls {
		again, err := b.writer.CreateRequest(t.Context(), call)
		require.NoError(t, err, name)
		require.Equal(t, first[name], again.ID, name)
		require.False(t, again.Created, name)
	}
	other := calls["a batch"]
	other.Jobs = other.Jobs[:1]
	_, err = b.writer.CreateRequest(t.Context(), other)
	require.ErrorContains(t, err, "set of jobs")
	otherCommand := calls["a command"]
	otherCommand.Command = &apiclient.Command{Argv: []string{"true"}}
	_, err = b.writer.CreateRequest(t.Context(), otherCommand)
	require.ErrorContains(t, err, "exists already")
}
