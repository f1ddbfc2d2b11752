package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestAReleaseIsRequestedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	date := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	wanted := apiclient.NewRequest{Project: "go", Tag: "1.26.0", CommitDate: &date, Selection: bench.Selection{Set: "one", Targets: []bench.Target{linux}}}
	r := b.send(t, "writer", http.MethodPost, "/api/v1/requests", `{"project":"go","tag":"1.26.0","commit_date":"2026-02-01T00:00:00Z","selection":{"set":"one","targets":["x86_64-unknown-linux-gnu"]}}`)
	require.Equal(t, http.StatusCreated, r.status, r.body)

	again, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, bench.Release, again.Type)
	require.Equal(t, bench.ArtifactsReady, again.Status)
	require.Equal(t, "wanda", again.Submitter)
	require.Equal(t, wanted.Selection, again.Selection)
	require.Equal(t, &date, again.CommitDate)
	require.Equal(t, "request/go/1.26.0/"+string(again.ID), again.WorkflowID)

	// Its workflow was started once, and that is known.
	require.Equal(t, []bench.RequestID{again.ID}, b.workflows.started)
	stored, err := b.store.Request(t.Context(), again.ID)
	require.NoError(t, err)
	require.NotNil(t, stored.WorkflowStartedAt)

	// The same release with something else is another wish.
	wanted.Selection = bench.Selection{}
	_, err = b.admin.CreateRequest(t.Context(), wanted)
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	require.ErrorContains(t, err, "benchloom status "+string(again.ID))
}

func TestAnIdempotencyKeyIsItsOwners(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	wanted := apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}, IdempotencyKey: "build-7"}
	first, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.True(t, first.Created)
	second, err := b.writer.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.False(t, second.Created)
	require.Equal(t, first.ID, second.ID)
	other, err := b.admin.CreateRequest(t.Context(), wanted)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, other.ID)
	wanted.Command.Argv = []string{"false"}
	_, err = b.writer.CreateRequest(t.Context(), wanted)
	require.ErrorContains(t, err, `the idempotency key "build-7" exists already with another selection or command`)
}

func TestACommandNeedsNeitherProjectNorTarget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sleep", "1"}, Env: map[string]string{"A": "b"}}, PlacementWish: apiclient.PlacementWish{SizeClass: 2}})
	require.NoError(t, err)
	require.Equal(t, apiclient.AdHocProject, r.Project)
	require.Equal(t, bench.AdHoc, r.Type)
	require.Equal(t, []bench.Target{linux}, r.Selection.Targets)
	require.Equal(t, &apiclient.Command{Argv: []string{"sleep", "1"}, Env: map[string]string{"A": "(hidden)"}, TimeoutSeconds: 1800, Iterations: 1}, r.Command)

	// With two targets it has to be said which.
	other := registration("c2")
	other.Target = arm
	_, err = b.collector.RegisterCollector(t.Context(), other)
	require.NoError(t, err)
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.ErrorContains(t, err, "the command could run on aarch64-unknown-linux-gnu or x86_64-unknown-linux-gnu; name one as target")
	r, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}, PlacementWish: apiclient.PlacementWish{Target: arm}})
	require.NoError(t, err)
	require.Equal(t, []bench.Target{arm}, r.Selection.Targets)
}

func TestWhatCannotRunIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	command := &apiclient.Command{Argv: []string{"true"}}
	_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: command})
	require.ErrorContains(t, err, "no collector is registered")
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.ErrorContains(t, err, "none is registered at all; start one with 'benchloom collector'")

	b.register(t, "c1")
	for want, r := range map[string]apiclient.NewRequest{
		"cannot be its own parent":                                  {Project: "go", Type: bench.Master, Tag: "abc", Parent: "abc"},
		"a request of type release has no parent":                   {Project: "go", Type: bench.Release, Tag: "1", Parent: "abc"},
		"versus is for ad-hoc measurements of an artifact":          {Project: "go", Type: bench.Release, Tag: "1.26.0", Versus: "1.25.0"},
		"versus is for ad-hoc":                                      {Command: command, Versus: "1.25.0"},
		"cannot be measured in turns with itself":                   {Project: "go", Type: bench.AdHoc, Tag: "1.26.0", Versus: "1.26.0"},
		"tag \"no tag\"":                                            {Project: "go", Type: bench.AdHoc, Tag: "1.26.0", Versus: "no tag"},
		"belongs to no pull request":                                {Project: "go", Type: bench.AdHoc, Tag: "1", PR: 7},
		"artifacts_ready is for try builds":                         {Project: "go", Type: bench.Master, Tag: "abc", ArtifactsReady: true},
		"the artifacts are said to be ready, but not":               {Project: "go", Type: bench.Try, ArtifactsReady: true},
		"the request names no project":                              {Tag: "1"},
		"the request names no artifact":                             {Project: "go"},
		"there is no project \"rust\"; the projects are adhoc, go":  {Project: "rust", Tag: "1"},
		"project adhoc has no suite":                                {Project: "adhoc", Tag: "1"},
		"tag \"a b\": use 1 to 128 letters":                         {Project: "go", Tag: "a b"},
		"a release request is measured with its project's suite":    {Project: "go", Type: bench.Release, Tag: "1", Command: command},
		"a release request is measured on its project's size class": {Project: "go", Tag: "1", PlacementWish: apiclient.PlacementWish{SizeClass: 2}},
		"target is for commands":                                    {Project: "go", Tag: "1", PlacementWish: apiclient.PlacementWish{Target: linux}},
		"a command measures no artifact":                            {Tag: "1", Command: command},
		"a command measures nothing of a suite":                     {Command: command, Selection: bench.Selection{Set: "one"}},
		"unknown benchmark \"jin\"; the suite has gin, kit, sort":   {Project: "go", Tag: "1", Selection: bench.Selection{Benchmarks: []string{"jin"}}},
		"unknown profile \"debug\"; the suite has build":            {Project: "go", Tag: "1", Selection: bench.Selection{Profiles: []string{"debug"}}},
		"unknown set \"two\"; the suite has one":                    {Project: "go", Tag: "1", Selection: bench.Selection{Set: "two"}},
		"can run aarch64-unknown-linux-gnu: registered are x86_64-unknown-linux-gnu size 2 (pool main)": {Project: "go", Tag: "1", Selection: bench.Selection{Targets: []bench.Target{arm}}},
		"of size class 8: registered are x86_64-unknown-linux-gnu size 2":                               {Project: "go", Type: bench.AdHoc, Tag: "1", PlacementWish: apiclient.PlacementWish{SizeClass: 8}},
		"selection.iterations is 5000":                           {Project: "go", Tag: "1", Selection: bench.Selection{Iterations: 5000}},
		"target \"linux\": write a target tuple":                 {Command: command, PlacementWish: apiclient.PlacementWish{Target: "linux"}},
		"can run aarch64-unknown-linux-gnu":                      {Command: command, PlacementWish: apiclient.PlacementWish{Target: arm}},
		"body.command.argv: expected array length >= 1":          {Command: &apiclient.Command{Argv: []string{}}},
		"the command names no program":                           {Command: &apiclient.Command{Argv: []string{""}}},
		"use at most 1048576":                                    {Command: &apiclient.Command{Argv: []string{"echo", strings.Repeat("x", 1<<20)}}},
		"holds a zero byte":                                      {Command: &apiclient.Command{Argv: []string{"a", "b\x00"}}},
		"a name without '='":                                     {Command: &apiclient.Command{Argv: []string{"a"}, Env: map[string]string{"A=B": "c"}}},
		"body.command.timeout_seconds: expected number <= 86400": {Command: &apiclient.Command{Argv: []string{"a"}, TimeoutSeconds: 86401}},
		"the idempotency key holds a zero byte":                  {Command: command, IdempotencyKey: "\x00"},
	} {
		_, err := b.writer.CreateRequest(t.Context(), r)
		require.ErrorContains(t, err, want)
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status, want)
	}
	list, err := b.nobody.Requests(t.Context(), apiclient.RequestQuery{})
	require.NoError(t, err)
	require.Empty(t, list.Requests)
	require.Empty(t, b.workflows.started)
}

func TestARequestIsRecordedEvenWhenItsWorkflowCannotBeStarted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	b.workflows.err = errors.New("no route to Temporal")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	require.True(t, r.Created)
	stored, err := b.store.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.Nil(t, stored.WorkflowStartedAt)
	require.Contains(t, b.log.String(), "no route to Temporal")

	// Asking again starts it.
	b.workflows.err = nil
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	stored, err = b.store.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.NotNil(t, stored.WorkflowStartedAt)
}

func TestRequestsAreListedInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	var want []string
	for i := range 5 {
		tag := fmt.Sprintf("1.%d.0", i)
		_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: tag})
		require.NoError(t, err)
		want = append([]string{tag}, want...)
	}
	_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(t, err)

	var got []string
	query := apiclient.RequestQuery{Project: "go", Limit: 2}
	for pages := 0; ; pages++ {
		require.Less(t, pages, 4)
		list, err := b.nobody.Requests(t.Context(), query)
		require.NoError(t, err)
		for _, r := range list.Requests {
			got = append(got, r.Tag)
		}
		if list.Next == "" {
			break
		}
		query.Cursor = list.Next
	}
	require.Equal(t, want, got)

	for n, q := range map[int]apiclient.RequestQuery{
		6: {}, 5: {Type: bench.Release}, 1: {Tag: "1.3.0"}, 0: {Status: bench.Completed},
	} {
		list, err := b.nobody.Requests(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, list.Requests, n)
	}
	_, err = b.nobody.Requests(t.Context(), apiclient.RequestQuery{Cursor: "later"})
	require.ErrorContains(t, err, `the cursor "later" is invalid`)
	_, err = b.nobody.Requests(t.Context(), apiclient.RequestQuery{Project: "rust"})
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}

func TestARequestIsShownWithAllBelowIt(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	b := setup(t, withClock(now))
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	_, err := b.store.Admit(t.Context(), "go", 1, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{j.request.ID}}, nil
	})
	require.NoError(t, err)
	plan := b.start(t, j, c, 1)
	_, err = b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, block(j.cases[:1], 1))
	require.NoError(t, err)
	failed := apiclient.BlockError{TestCase: &j.cases[1], Kind: bench.FailJob, Message: "exit status 1", OutputTail: "boom\x00"}
	_, err = b.collector.UploadBlock(t.Context(), plan.Run.ID, 2, apiclient.Block{Results: []apiclient.TestCaseResult{}, Errors: []apiclient.BlockError{failed}})
	require.NoError(t, err)
	now.advance(time.Minute)

	for _, ref := range []string{string(j.request.ID), "go:1.26.0"} {
		d, err := b.nobody.Request(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, bench.InProgress, d.Status)
		require.Len(t, d.Jobs, 1)
		require.Equal(t, j.key, d.Jobs[0].Key)
		require.Equal(t, 1, d.Jobs[0].Done)
		require.Equal(t, "bench/x86_64-unknown-linux-gnu/2/main", d.Jobs[0].TaskQueue)
		require.Len(t, d.Runs, 1)
		require.Equal(t, "c1", d.Runs[0].Collector)
		require.Len(t, d.Errors, 1)
		require.Equal(t, "exit status 1", d.Errors[0].Message)
		require.Equal(t, j.cases[1], *d.Errors[0].TestCase)
		require.Equal(t, 2, d.Progress.TestCases)
		require.Equal(t, 1, d.Progress.TestCasesDone)
		// The other one of two test cases will take as long as the first.
		require.NotNil(t, d.Progress.EstimateSeconds)
		require.InDelta(t, now.Now().Sub(*d.Jobs[0].StartedAt).Seconds(), *d.Progress.EstimateSeconds, 1e-6)
	}
	for want, ref := range map[string]string{
		"there is no request raaaaaaaaaa":                                      "raaaaaaaaaa",
		`project go has no request for "9.9"; 'benchloom status --project go'`: "go:9.9",
		`there is no project "rust"`:                                           "rust:1",
	} {
		_, err := b.nobody.Request(t.Context(), ref)
		require.ErrorIs(t, err, apiclient.ErrNotFound)
		require.ErrorContains(t, err, want)
	}
	_, err = b.nobody.Request(t.Context(), "nonsense")
	require.ErrorContains(t, err, "or name it as project:tag")
}

func TestARequestIsCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	b.start(t, j, c, 1)
	r, err := b.writer.CancelRequest(t.Context(), "go:1.26.0", apiclient.Act{Reason: "wrong version"})
	require.NoError(t, err)
	require.Equal(t, bench.Completed, r.Status)
	require.Equal(t, bench.Cancelled, r.Outcome)
	require.Contains(t, r.Message, "wanda")
	require.Contains(t, r.Message, "wrong version")
	require.Equal(t, map[bench.RequestID][]bench.JobRef{r.ID: {b.jobRef(t, j.key)}}, b.workflows.cancelled)

	// Again, now that Temporal is away: nobody is bothered.
	b.workflows.err = errors.New("no route to Temporal")
	_, err = b.writer.CancelRequest(t.Context(), string(r.ID), apiclient.Act{})
	require.NoError(t, err)
	require.Contains(t, b.log.String(), "no route to Temporal")

	b.workflows.err = nil
	done := b.measure(t, "1.25.0", 1, c)
	_, err = b.writer.CancelRequest(t.Context(), string(done.request.ID), apiclient.Act{})
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	require.ErrorContains(t, err, "has ended with success; there is nothing left to cancel")
	_, err = b.writer.CancelRequest(t.Context(), "raaaaaaaaaa", apiclient.Act{})
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}
