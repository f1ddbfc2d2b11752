package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

var (
	cpuUsed  = profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}
	freeOfIt = profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.MemoryFree)}
	fetching = profiler.Series{Scope: profiler.ScopeTiming, Name: "fetch"}
)

// sampled are n values of a series.
func sampled(series profiler.Series, attempt string, sequence, n int) profiler.Batch {
	b := profiler.Batch{Series: series, Unit: series.Unit(), Attempt: attempt, Host: "m1", Sequence: sequence}
	for i := range n {
		b.Values = append(b.Values, float64(i)/7)
		b.Batches = append(b.Batches, sequence)
		b.Times = append(b.Times, time.Date(2026, 3, 4, 15, 0, 10*sequence, 0, time.UTC).Add(time.Duration(i)*profiler.Interval))
	}
	return b
}

func samples(attempt string, batches ...profiler.Batch) profiler.Upload {
	return profiler.Upload{Attempt: attempt, Host: "m1", Batches: batches}
}

// lastOf is the last upload of an attempt.
func lastOf(attempt string) profiler.Upload {
	u := samples(attempt)
	u.Summary = &profiler.Summary{
		Commands: []profiler.Command{{Batch: 1, Artifact: "1.26.0", Case: "gin build full gc", Iteration: 1}},
		Series:   []profiler.SeriesSummary{{Series: cpuUsed, Unit: profiler.CPUs, Batches: []int{1}, Mean: []float64{0.9}, Max: []float64{1}}},
		Phases:   []profiler.PhaseSummary{{Name: "fetch", Count: 2, TotalSeconds: 3, LongestSeconds: 2}},
	}
	return u
}

func profilePath(run bench.RunID, of string) string {
	return "/api/v1/runs/" + string(run) + "/profile/" + of
}

// sendSamples uploads as one of the callers.
func (w *rolesWorld) sendSamples(t *testing.T, who string, run bench.RunID, u profiler.Upload) reply {
	t.Helper()
	t.Helper()
	text, err := json.Marshal(u)
	require.NoError(t, err)
	return w.send(t, who, http.MethodPost, profilePath(run, "batches"), string(text), "Content-Type", "application/json")
}

func TestP24AnUploadOfSamplesIsStoredOrRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	good := sampled(cpuUsed, "a1", 0, 3)
	wrong := func(change func(*profiler.Batch)) profiler.Batch {
		b := sampled(freeOfIt, "a1", 0, 3)
		change(&b)
		return b
	}
	for want, b := range map[string]profiler.Batch{
		"body.batches[1].times: there are 2 of them, and 3 values":           wrong(func(b *profiler.Batch) { b.Times = b.Times[:2] }),
		"body.batches[1].batches: there are 4 of them, and 3 values":         wrong(func(b *profiler.Batch) { b.Batches = append(b.Batches, 1) }),
		"body.batches[1].values: there are none":                             wrong(func(b *profiler.Batch) { b.Values = nil }),
		"body.batches[1].values: 3001 are more than the 3000 of a series":    sampled(freeOfIt, "a1", 0, 3001),
		"body.batches[1].times[2]: it is not after the one before":           wrong(func(b *profiler.Batch) { b.Times[2] = b.Times[1] }),
		"body.batches[1].times[0]: it is before the year 2000 or after 2199": wrong(func(b *profiler.Batch) { b.Times[0] = time.Time{} }),
		"body.batches[1].batches[1]: batch indexes count from 0":             wrong(func(b *profiler.Batch) { b.Batches[1] = -1 }),
		"body.batches[1].sequence: batches of a series count from 0 to 59":   wrong(func(b *profiler.Batch) { b.Sequence = 60 }),
		"body.batches[1].scope: use machine, job or timing":                  wrong(func(b *profiler.Batch) { b.Scope = "host" }),
		"body.batches[1].name: there is no such metric":                      wrong(func(b *profiler.Batch) { b.Name, b.Unit = "free_memory", "" }),
		"body.batches[1].name: it has 1 to 100 bytes of printable text": wrong(func(b *profiler.Batch) {
			b.Scope, b.Unit, b.Name = profiler.ScopeTiming, profiler.Seconds, strings.Repeat("x", 1<<20)
		}),
		"body.batches[1].device: it has at most 100 bytes":       wrong(func(b *profiler.Batch) { b.Device = "\x1b[2J" }),
		"body.batches[1].unit: it is not the unit of the series": wrong(func(b *profiler.Batch) { b.Unit = "GB" }),
		"body.batches[1].attempt: it is not that of the upload":  wrong(func(b *profiler.Batch) { b.Attempt = "a2" }),
		"body.batches[1]: the series is there twice":             good,
	} {
		got := w.sendSamples(t, "own", run, samples("a1", good, b))
		require.Equal(t, http.StatusUnprocessableEntity, got.status, want)
		p := got.problem(t)
		require.Contains(t, p.Detail, "nothing of the upload is stored")
		require.Contains(t, faultsOf(p), want)
		require.Less(t, len(got.body), 10_000, "nothing is echoed")
	}
	// All errors at once.
	odd := wrong(func(b *profiler.Batch) { b.Times, b.Scope, b.Sequence = b.Times[:1], "host", -1 })
	p := w.sendSamples(t, "own", run, samples("", good, odd)).problem(t)
	for _, want := range []string{"body.attempt: ", "body.batches[1].times: ", "body.batches[1].scope: ", "body.batches[1].sequence: "} {
		require.Contains(t, faultsOf(p), want)
	}
	// However many there are.
	many := samples("a1")
	for range 5000 {
		many.Batches = append(many.Batches, profiler.Batch{})
	}
	p = w.sendSamples(t, "own", run, many).problem(t)
	require.Len(t, p.Errors, 101)
	require.Contains(t, faultsOf(p), "more")

	list, err := w.reader.Profile(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileNone, list.State)
	require.False(t, list.Over)
	got := w.sendSamples(t, "own", run, samples("a1", good))
	require.JSONEq(t, `{"stored":3,"repeated":0}`, got.body)
	got = w.sendSamples(t, "own", run, samples("a1", good))
	require.JSONEq(t, `{"stored":0,"repeated":1}`, got.body)
}

func faultsOf(p apiclient.Problem) string {
	var b strings.Builder
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "%s: %s\n", e.Location, e.Message)
	}
	return b.String()
}

func TestP24SamplesAreAcceptedFromTheirOwnRunOnly(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	u := samples("a1", sampled(cpuUsed, "a1", 0, 3))
	got := w.sendSamples(t, "own", "aaaaaaaaaaaaaaaa-00000000", u)
	require.Equal(t, http.StatusNotFound, got.status)
	require.Equal(t, "urn:benchloom:unknown-run", got.problem(t).Type)
	require.Equal(t, http.StatusForbidden, w.sendSamples(t, "other", run, u).status)
	require.Equal(t, http.StatusUnauthorized, w.sendSamples(t, "", run, u).status)
	for _, path := range []string{"series", "metrics"} {
		got = w.send(t, api.RoleReader, http.MethodGet, profilePath("aaaaaaaaaaaaaaaa-00000000", path), "")
		require.Equal(t, http.StatusNotFound, got.status)
	}

	// Shortly after its end, and no later.
	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	require.Equal(t, http.StatusOK, w.sendSamples(t, "own", run, u).status)
	w.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	got = w.sendSamples(t, "own", run, samples("a1", sampled(cpuUsed, "a1", 1, 3)))
	require.Equal(t, http.StatusConflict, got.status)
	require.Equal(t, apiclient.ProblemRunClosed, got.problem(t).Type)
}

func TestP22SamplesThatAreNoneOrTooManyAreRefused(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	text, err := json.Marshal(samples("a1", sampled(cpuUsed, "a1", 0, 1)))
	require.NoError(t, err)
	for _, number := range []string{"NaN", "Infinity", "1e999", `"1"`} {
		body := strings.Replace(string(text), `"values":[0]`, `"values":[`+number+`]`, 1)
		got := w.send(t, "own", http.MethodPost, profilePath(run, "batches"), body, "Content-Type", "application/json")
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, got.status, number)
		got.problem(t)
	}
	// Ten million samples, as they are, and as a few bytes that become as many.
	many := strings.Replace(string(text), `"values":[0]`, `"values":[0`+strings.Repeat(",0", 10_000_000)+`]`, 1)
	got := w.send(t, "own", http.MethodPost, profilePath(run, "batches"), many, "Content-Type", "application/json")
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
	few := bombOf(t, string(text[:len(text)-1]), len(many))
	got = w.send(t, "own", http.MethodPost, profilePath(run, "batches"), few, "Content-Type", "application/json", "Content-Encoding", "gzip")
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
	// A hundred times as many as a series may have, which a body holds.
	most := strings.Replace(string(text), `"values":[0]`, `"values":[0`+strings.Repeat(",0", 300_000)+`]`, 1)
	got = w.send(t, "own", http.MethodPost, profilePath(run, "batches"), most, "Content-Type", "application/json")
	require.Equal(t, http.StatusUnprocessableEntity, got.status)
	require.Contains(t, faultsOf(got.problem(t)), "300001 are more than the 3000 of a series")
	// What single uploads may have, their sum may not.
	for sequence := range 2 {
		got = w.sendSamples(t, "own", run, samples("a1", sampled(cpuUsed, "a1", sequence, 1500)))
		require.Equal(t, http.StatusOK, got.status, got.body)
	}
	got = w.sendSamples(t, "own", run, samples("a1", sampled(fetching, "a1", 0, 1), sampled(cpuUsed, "a1", 2, 1)))
	require.Equal(t, http.StatusUnprocessableEntity, got.status)
	require.Contains(t, faultsOf(got.problem(t)), "body.batches[1]: the series has 3000 values already")
	list, err := w.reader.Profile(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []apiclient.ProfileSeries{{Series: cpuUsed, Unit: profiler.CPUs, Values: 3000}}, list.Attempts[0].Series)
}

// A collector that dies leaves a partial attempt; the one that follows is whole.
func TestAnAttemptThatWasCutOffIsPartial(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	u := samples("a1", sampled(cpuUsed, "a1", 0, 3))
	u.Absent = []profiler.Absence{{Scope: profiler.ScopeMachine, Metric: profiler.CPUFrequency, Reason: "a virtual machine"}}
	u.DroppedTotal = 7
	collector := w.client(t, "own")
	require.NoError(t, collector.SendProfile(t.Context(), run, u))
	list, err := w.reader.Profile(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileRecording, list.State)
	require.False(t, list.Attempts[0].Partial, "it may go on")
	require.Equal(t, u.Absent, list.Attempts[0].Absent)
	require.EqualValues(t, 7, list.Attempts[0].DroppedTotal)

	require.NoError(t, collector.SendProfile(t.Context(), run, samples("a2", sampled(cpuUsed, "a2", 0, 4))))
	require.NoError(t, collector.SendProfile(t.Context(), run, lastOf("a2")))
	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	list, err = w.reader.Profile(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileFinished, list.State)
	require.True(t, list.Over)
	require.Len(t, list.Attempts, 2)
	require.True(t, list.Attempts[0].Partial)
	require.False(t, list.Attempts[1].Partial)
	require.Equal(t, 3, list.Attempts[0].Series[0].Values)
	require.Equal(t, 4, list.Attempts[1].Series[0].Values)

	// A run that was lost, and is measured again as another one.
	lost, _ := w.run()
	require.NoError(t, collector.SendProfile(t.Context(), lost, samples("a1", sampled(cpuUsed, "a1", 0, 3))))
	require.NoError(t, w.collector.FinishRun(t.Context(), lost, apiclient.RunFinish{Outcome: bench.RunLost}))
	w.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	list, err = w.reader.Profile(t.Context(), lost)
	require.NoError(t, err)
	require.True(t, list.Attempts[0].Partial)
}

func TestP25WithoutFollowingCurrentSamplesAreAnswered(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	page, err := w.reader.ProfileMetrics(t.Context(), run, 0)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileMetrics{State: apiclient.ProfileNone, Batches: []profiler.Batch{}}, page)
	collector := w.client(t, "own")
	first := samples("a1", sampled(cpuUsed, "a1", 0, 100), sampled(fetching, "a1", 0, 1))
	require.NoError(t, collector.SendProfile(t.Context(), run, first))
	page, err = w.reader.ProfileMetrics(t.Context(), run, 0)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileMetrics{State: apiclient.ProfileRecording, Batches: first.Batches, Next: 1}, page)

	second := samples("a1", sampled(cpuUsed, "a1", 1, 50), sampled(freeOfIt, "a1", 0, 50))
	require.NoError(t, collector.SendProfile(t.Context(), run, second))
	require.NoError(t, collector.SendProfile(t.Context(), run, lastOf("a1")))
	page, err = w.reader.ProfileMetrics(t.Context(), run, page.Next, "job/cpu_used", "fetch")
	require.NoError(t, err)
	require.Equal(t, second.Batches[:1], page.Batches)
	require.Equal(t, []apiclient.ProfileSummary{{Attempt: "a1", Summary: *lastOf("a1").Summary}}, page.Summaries)
	require.Equal(t, 3, page.Next)
	page, err = w.reader.ProfileMetrics(t.Context(), run, page.Next)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileMetrics{State: apiclient.ProfileRecording, Batches: []profiler.Batch{}, Next: 3}, page)
}

// event is one of a stream.
type event struct{ id, name, data string }

// streamed reads events of a run's samples as they come; the channel is closed at the end of the answer.
func (w *rolesWorld) streamed(t *testing.T, run bench.RunID, headers ...string) <-chan event {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+profilePath(run, "metrics?follow=true"), nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+w.tokens[api.RoleReader])
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := w.server.Client().Do(request) //nolint:bodyclose // its reader closes it
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	events := make(chan event)
	go func() {
		defer close(events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 64<<20)
		var e event
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e != (event{}) {
					select {
					case events <- e:
					case <-request.Context().Done():
						return
					}
				}
				e = event{}
			}
		}
	}()
	return events
}

func (e event) page(t *testing.T) apiclient.ProfileMetrics {
	t.Helper()
	t.Helper()
	require.Equal(t, "samples", e.name)
	var page apiclient.ProfileMetrics
	require.NoError(t, json.Unmarshal([]byte(e.data), &page))
	require.Equal(t, e.id, fmt.Sprint(page.Next))
	return page
}

func TestP25FollowingGoesOnUntilTheRunIsOverAndEverythingWasRead(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	collector := w.client(t, "own")
	events := w.streamed(t, run)
	require.Empty(t, (<-events).page(t).Batches)
	first := samples("a1", sampled(cpuUsed, "a1", 0, 100))
	require.NoError(t, collector.SendProfile(t.Context(), run, first))
	require.Equal(t, first.Batches, (<-events).page(t).Batches)
	// The run ends before its last samples arrive.
	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	second := samples("a1", sampled(cpuUsed, "a1", 1, 20))
	second.Summary = lastOf("a1").Summary
	require.NoError(t, collector.SendProfile(t.Context(), run, second))
	page := (<-events).page(t)
	require.Equal(t, second.Batches, page.Batches)
	require.Len(t, page.Summaries, 1)
	require.Equal(t, apiclient.ProfileFinished, page.State)
	require.Equal(t, event{"2", "end", "{}"}, <-events)
	_, open := <-events
	require.False(t, open)

	// Who comes back misses nothing and gets nothing twice.
	events = w.streamed(t, run, "Last-Event-ID", "1")
	require.Equal(t, second.Batches, (<-events).page(t).Batches)
	require.Equal(t, "end", (<-events).name)
	// A run that was never sampled ends as well.
	silent, _ := w.run()
	require.NoError(t, w.collector.FinishRun(t.Context(), silent, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	w.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	events = w.streamed(t, silent)
	require.Empty(t, (<-events).page(t).Batches)
	require.Equal(t, "end", (<-events).name)
}

// The API's client follows as a browser does: it is told each page once, and the end.
func TestP25AClientFollowsARun(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	collector := w.client(t, "own")
	first, last := samples("a1", sampled(cpuUsed, "a1", 0, 100), sampled(freeOfIt, "a1", 0, 100)), lastOf("a1")
	require.NoError(t, collector.SendProfile(t.Context(), run, first))
	var pages []apiclient.ProfileMetrics
	next, err := w.reader.FollowProfile(t.Context(), run, 0, func(p apiclient.ProfileMetrics) error {
		if pages = append(pages, p); len(pages) == 1 {
			require.NoError(t, collector.SendProfile(t.Context(), run, last))
			require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
		}
		return nil
	}, "job/cpu_used")
	require.NoError(t, err)
	require.Equal(t, 2, next)
	require.Len(t, pages, 2)
	require.Equal(t, first.Batches[:1], pages[0].Batches)
	require.Empty(t, pages[1].Batches)
	require.Equal(t, []apiclient.ProfileSummary{{Attempt: "a1", Summary: *last.Summary}}, pages[1].Summaries)
	// Who has seen it all is told the end alone, after an empty page.
	_, err = w.reader.FollowProfile(t.Context(), run, next, func(p apiclient.ProfileMetrics) error {
		require.Empty(t, p.Batches)
		return nil
	})
	require.NoError(t, err)
	_, err = w.reader.FollowProfile(t.Context(), "aaaaaaaaaaaaaaaa-00000000", 0, func(apiclient.ProfileMetrics) error { return nil })
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}

// Whoever opens streams without end keeps nobody else from following: one caller has half of the places, waits for one, and is
// asked to come back.
func TestLongFollowersOfSamplesAreBounded(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t)
	run, _ := w.run()
	const most = 32 // of one caller
	one, leave := context.WithCancel(t.Context())
	defer leave()
	follow := func(ctx context.Context, c *apiclient.Client) error {
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			var once sync.Once
			_, err := c.FollowProfile(ctx, run, 0, func(apiclient.ProfileMetrics) error {
				once.Do(func() { close(began) })
				return nil
			})
			ended <- err
		}()
		select {
		case <-began:
			return nil
		case err := <-ended:
			return err
		}
	}
	streams, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, follow(one, w.reader))
	for range most - 1 {
		require.NoError(t, follow(streams, w.reader))
	}
	var busy *apiclient.Problem
	require.ErrorAs(t, follow(streams, w.reader), &busy)
	require.Equal(t, []any{http.StatusServiceUnavailable, "urn:benchloom:busy"}, []any{busy.Status, busy.Type})
	require.True(t, apiclient.IsTransient(busy))
	require.Positive(t, busy.RetryAfter)
	require.NoError(t, follow(streams, w.writer), "another caller")
	leave()
	require.NoError(t, follow(streams, w.reader), "a place that was given back")
}
