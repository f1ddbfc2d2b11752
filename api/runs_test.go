package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func TestARunFromTheFenceToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project := b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")

	// The fence says what is to be done; asked again, the same.
	plan := b.start(t, j, c, 1)
	require.Equal(t, "go", plan.Project)
	require.Equal(t, project.SuiteHash, plan.SuiteHash)
	require.Equal(t, j.cases, plan.Missing)
	require.Equal(t, j.key, plan.Job.Key)
	require.Equal(t, 1, plan.Run.Number)
	require.Equal(t, "c1", plan.Run.Collector)
	require.Nil(t, plan.Command)
	require.Equal(t, plan, b.start(t, j, c, 1))

	// A block, twice: the second time changes nothing.
	for range 2 {
		receipt, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, block(j.cases[:1], 1))
		require.NoError(t, err)
		require.Equal(t, 1, receipt.Accepted+receipt.Superseded)
	}
	// Not compressed is fine, too.
	text, err := json.Marshal(block(j.cases[1:], 2))
	require.NoError(t, err)
	r := b.send(t, api.RoleCollector, http.MethodPost, fmt.Sprintf("/api/v1/runs/%s/blocks/2", plan.Run.ID), string(text))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.JSONEq(t, `{"accepted":1,"superseded":0}`, r.body)

	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess, OutputTail: "done\x00"}))
	d, err := b.nobody.Job(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, 2, d.Done)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome)
	require.NotNil(t, d.Runs[0].FinishedAt)

	_, err = b.nobody.Job(t.Context(), "aaaaaaaaaaaaaaaa")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	_, err = b.nobody.Job(t.Context(), "nonsense")
	require.ErrorContains(t, err, "a job's key is 16 letters and digits")
}

func TestTheFenceRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	id := bench.NewRunID(j.key, "workflow", "activity", 1)
	start := apiclient.RunStart{Reason: bench.Scheduled, Collector: "c1", Epoch: c.Collector.Epoch}

	_, err := b.collector.StartRun(t.Context(), bench.RunID("aaaaaaaaaaaaaaaa-00000000"), start)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	_, err = b.collector.StartRun(t.Context(), id, apiclient.RunStart{Reason: bench.Scheduled, Collector: "c2", Epoch: 1})
	require.ErrorIs(t, err, apiclient.ErrFenced)
	_, err = b.collector.StartRun(t.Context(), id, apiclient.RunStart{Reason: "whim", Collector: "c1", Epoch: start.Epoch})
	require.ErrorContains(t, err, "body.reason: expected value to be one of")

	// A newer registration fences the older one off.
	b.register(t, "c1")
	_, err = b.collector.StartRun(t.Context(), id, start)
	require.ErrorIs(t, err, apiclient.ErrFenced)
	require.False(t, apiclient.IsTransient(err))

	c = b.register(t, "c1")
	start.Epoch = c.Collector.Epoch
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "given up")
	require.NoError(t, err)
	_, err = b.collector.StartRun(t.Context(), id, start)
	require.ErrorIs(t, err, apiclient.ErrJobClosed)

	// Nobody waits for a job whose requests have ended otherwise.
	other := b.submit(t, "1.25.0")
	require.NoError(t, b.store.CompleteRequest(t.Context(), other.request.ID, bench.Failure, "", nil, "given up"))
	_, err = b.collector.StartRun(t.Context(), bench.NewRunID(other.key, "workflow", "activity", 1), start)
	require.ErrorIs(t, err, apiclient.ErrNobodyWaits)
}

func manyValues(n int) map[bench.Metric]float64 {
	values := make(map[bench.Metric]float64, n)
	for i := range n {
		values[bench.Metric(fmt.Sprintf("m%d", i))] = 1
	}
	return values
}

func TestBlocksAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.MaxBlock = 50_000 })
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	wrong := func(change func(*apiclient.Block)) apiclient.Block {
		block := block(j.cases[:1], 1)
		change(&block)
		return block
	}
	for want, block := range map[string]apiclient.Block{
		"result 1: target \"linux\"":                      wrong(func(b *apiclient.Block) { b.Results[0].TestCase.Target = "linux" }),
		"either collections or a reason":                  wrong(func(b *apiclient.Block) { b.Results[0].Collections = nil }),
		"has to have either collections":                  wrong(func(b *apiclient.Block) { b.Results[0].Skipped = "no gcc" }),
		"has iteration 2 twice":                           wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Iteration = 2 }),
		"iteration 1: a collection has values and a time": wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Values = map[bench.Metric]float64{} }),
		"a collection has values and a time":              wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].CollectedAt = time.Time{} }),
		"iteration 1: metric \"three short words\"":       wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Values["three short words"] = 1 }),
		"collections[0].iteration: expected number >= 1":  wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Iteration = 0 }),
		"no test case has more than 1000":                 wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Iteration = 1001 }),
		"are more than the 2500":                          wrong(func(b *apiclient.Block) { b.Results[0].Collections[0].Values = manyValues(2501) }),
		"error 1: unknown kind of failure \"bad luck\"":   {Results: []apiclient.TestCaseResult{}, Errors: []apiclient.BlockError{{Kind: "bad luck"}}},
		"error 1: benchmark \"\"":                         {Results: []apiclient.TestCaseResult{}, Errors: []apiclient.BlockError{{Kind: bench.FailJob, TestCase: &bench.TestCase{}}}},
	} {
		_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, block)
		require.ErrorContains(t, err, want)
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status, want)
	}
	// A test case that is not the job's.
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, wrong(func(b *apiclient.Block) { b.Results[0].TestCase.Benchmark = "jin" }))
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	// An unknown run.
	_, err = b.collector.UploadBlock(t.Context(), "aaaaaaaaaaaaaaaa-00000000", 1, block(j.cases, 1))
	require.ErrorIs(t, err, apiclient.ErrNotFound)

	path := fmt.Sprintf("/api/v1/runs/%s/blocks/1", plan.Run.ID)
	bomb := bombOf(t, "", 20_000_000)
	r := b.send(t, api.RoleCollector, http.MethodPost, path, bomb, "Content-Encoding", "gzip")
	require.Equal(t, http.StatusRequestEntityTooLarge, r.status)
	r.problem(t)
	r = b.send(t, api.RoleCollector, http.MethodPost, path, "{}", "Content-Encoding", "gzip")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.problem(t).Detail, "not valid gzip")
	r = b.send(t, api.RoleCollector, http.MethodPost, path, "{}", "Content-Encoding", "br")
	require.Equal(t, http.StatusUnsupportedMediaType, r.status)
	r = b.send(t, "", http.MethodPost, path, bomb, "Content-Encoding", "gzip")
	require.Equal(t, http.StatusUnauthorized, r.status)
	r = b.send(t, api.RoleCollector, http.MethodPost, fmt.Sprintf("/api/v1/runs/%s/blocks/0", plan.Run.ID), "{}")
	require.Equal(t, http.StatusUnprocessableEntity, r.status)
	r = b.send(t, api.RoleCollector, http.MethodPost, "/api/v1/runs/nonsense/blocks/1", `{"results":[]}`)
	require.Contains(t, r.problem(t).Detail, "a run's ID is")
}

// bombOf returns a few bytes of gzip that unpack to a text and so many spaces.
func bombOf(t *testing.T, text string, spaces int) string {
	t.Helper()
	zip := func(text string) string {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		_, err := zipped.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, zipped.Close())
		return out.String()
	}
	// A file may have many members: one is zipped once, as that takes most of the time.
	const member = 1 << 20
	out := zip(text+strings.Repeat(" ", spaces%member)) + strings.Repeat(zip(strings.Repeat(" ", member)), spaces/member)
	require.Less(t, len(out), spaces/400)
	return out
}

func TestOutputIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")

	// No run has begun yet.
	piece, err := b.nobody.JobLog(t.Context(), j.key, apiclient.LogQuery{})
	require.NoError(t, err)
	require.Equal(t, apiclient.LogPiece{Data: []byte{}}, piece)
	_, err = b.nobody.JobLog(t.Context(), j.key, apiclient.LogQuery{Run: 2})
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, "has no run 2: it has had 0 runs")

	plan := b.start(t, j, c, 1)
	next, err := b.collector.AppendLog(t.Context(), plan.Run.ID, 0, []byte("hello "))
	require.NoError(t, err)
	require.EqualValues(t, 6, next)
	// Delivered again, with more.
	next, err = b.collector.AppendLog(t.Context(), plan.Run.ID, 0, []byte("hello world"))
	require.NoError(t, err)
	require.EqualValues(t, 11, next)
	piece, err = b.nobody.JobLog(t.Context(), j.key, apiclient.LogQuery{From: 6, Run: 1})
	require.NoError(t, err)
	require.Equal(t, apiclient.LogPiece{Run: plan.Run.ID, Data: []byte("world"), Next: 11}, piece)

	// Who waits is answered as soon as there is something.
	answers := make(chan apiclient.LogPiece, 1)
	go func() {
		piece, err := b.nobody.RunLog(t.Context(), plan.Run.ID, apiclient.LogQuery{From: 11, Wait: 20 * time.Second})
		if err != nil {
			piece.Data = []byte(err.Error())
		}
		answers <- piece
	}()
	_, err = b.collector.AppendLog(t.Context(), plan.Run.ID, 11, []byte("!"))
	require.NoError(t, err)
	require.Equal(t, apiclient.LogPiece{Run: plan.Run.ID, Data: []byte("!"), Next: 12}, <-answers)

	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "no"}))
	piece, err = b.nobody.RunLog(t.Context(), plan.Run.ID, apiclient.LogQuery{From: 12, Wait: 20 * time.Second})
	require.NoError(t, err)
	require.Equal(t, apiclient.LogPiece{Run: plan.Run.ID, Data: []byte{}, Next: 12, Complete: true}, piece)

	// The last run is the one that is shown.
	second := b.start(t, j, c, 2)
	piece, err = b.nobody.JobLog(t.Context(), j.key, apiclient.LogQuery{})
	require.NoError(t, err)
	require.Equal(t, second.Run.ID, piece.Run)
	require.False(t, piece.Complete)

	_, err = b.nobody.RunLog(t.Context(), "aaaaaaaaaaaaaaaa-00000000", apiclient.LogQuery{})
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	_, err = b.collector.AppendLog(t.Context(), "aaaaaaaaaaaaaaaa-00000000", 0, []byte("x"))
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorIs(t, b.collector.FinishRun(t.Context(), "aaaaaaaaaaaaaaaa-00000000", apiclient.RunFinish{Outcome: bench.RunLost}), apiclient.ErrNotFound)
	require.ErrorContains(t, b.collector.FinishRun(t.Context(), second.Run.ID, apiclient.RunFinish{Outcome: "fine"}), "body.outcome: expected value to be one of")
	r := b.send(t, api.RoleCollector, http.MethodPost, fmt.Sprintf("/api/v1/runs/%s/log", second.Run.ID), "x")
	require.Contains(t, r.problem(t).Errors[0].Location, "query.offset")
}

// restOf returns the rest of a run of a job: results of all its test cases, some output and
// some samples.
func restOf(j job) *apiclient.RunRest {
	results, sums := block(j.cases, 1), samples("attempt", sampled(cpuUsed, "attempt", 0, 2))
	return &apiclient.RunRest{Block: &results, Output: &apiclient.OutputPiece{Data: []byte("said\n")}, Profile: &sums}
}

func TestTheRestOfARunIsHandedInWithItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	end := apiclient.RunFinish{Outcome: bench.RunSuccess, Rest: restOf(j)}
	for range 2 { // repeating it changes nothing
		require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, end))
		d, err := b.nobody.Job(t.Context(), j.key)
		require.NoError(t, err)
		require.Equal(t, len(j.cases), d.Done)
		require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome)
		piece, err := b.nobody.RunLog(t.Context(), plan.Run.ID, apiclient.LogQuery{})
		require.NoError(t, err)
		require.Equal(t, apiclient.LogPiece{Run: plan.Run.ID, Data: []byte("said\n"), Next: 5, Complete: true}, piece)
		profile, err := b.nobody.Profile(t.Context(), plan.Run.ID)
		require.NoError(t, err)
		require.Len(t, profile.Attempts, 1)
		require.Equal(t, 2, profile.Attempts[0].Series[0].Values)
	}
}

// A block that is refused leaves the run open, and nothing of the rest is stored.
func TestARunWhoseLastBlockIsRefusedStaysOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	stranger := j.cases[0]
	stranger.Benchmark = "stranger"
	for _, wrong := range []apiclient.Block{block([]bench.TestCase{stranger}, 1), {Results: []apiclient.TestCaseResult{{TestCase: j.cases[0]}}}, {Errors: []apiclient.BlockError{{Kind: "odd"}}}} {
		end := apiclient.RunFinish{Outcome: bench.RunSuccess, Rest: restOf(j)}
		end.Rest.Block = &wrong
		err := b.collector.FinishRun(t.Context(), plan.Run.ID, end)
		require.True(t, apiclient.IsRefusal(err), "%v", err)
		d, err := b.nobody.Job(t.Context(), j.key)
		require.NoError(t, err)
		require.Zero(t, d.Done)
		require.Nil(t, d.Runs[0].FinishedAt)
		piece, err := b.nobody.RunLog(t.Context(), plan.Run.ID, apiclient.LogQuery{})
		require.NoError(t, err)
		require.Zero(t, piece.Next)
		profile, err := b.nobody.Profile(t.Context(), plan.Run.ID)
		require.NoError(t, err)
		require.Empty(t, profile.Attempts)
	}
}

// Samples are worth less than the end of their run.
func TestARunIsClosedWithoutSamplesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	end := apiclient.RunFinish{Outcome: bench.RunSuccess, Rest: restOf(j)}
	end.Rest.Profile.Batches[0].Attempt = "another"
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, end))
	d, err := b.nobody.Job(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, len(j.cases), d.Done)
	require.NotNil(t, d.Runs[0].FinishedAt)
	profile, err := b.nobody.Profile(t.Context(), plan.Run.ID)
	require.NoError(t, err)
	require.Empty(t, profile.Attempts)
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	var next int64
	var err error
	for range 5 { // MB, of which 4 are kept
		next, err = b.collector.AppendLog(t.Context(), plan.Run.ID, next, []byte(strings.Repeat("x", 1<<20)))
		require.NoError(t, err)
	}
	require.EqualValues(t, 5<<20, next)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	var read, pieces int
	for q := (apiclient.LogQuery{}); ; pieces++ {
		piece, err := b.nobody.RunLog(t.Context(), plan.Run.ID, q)
		require.NoError(t, err)
		read += len(piece.Data)
		q.From = piece.Next
		if piece.Complete {
			break
		}
		require.Less(t, pieces, 20)
	}
	require.Equal(t, 4<<20, read)
}

// Temporal tries a job that has failed again by itself: it goes first within its queue
// then. What ended otherwise is dispatched anew.
func TestAJobThatFailedGoesFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	for i, outcome := range []bench.RunOutcome{bench.RunLost, bench.RunFailure} {
		plan := b.start(t, j, c, int32(i+1))
		require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: outcome}))
	}
	b.wait()
	require.Equal(t, []bench.JobKey{j.key}, b.workflows.first)
}
