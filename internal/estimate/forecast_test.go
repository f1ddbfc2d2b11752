package estimate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/estimate"
)

func waiting(minutes int) estimate.Job {
	return estimate.Job{TaskQueue: "a", Rest: time.Duration(minutes) * time.Minute}
}

func runs(minutes int) estimate.Job {
	j := waiting(minutes)
	j.Running = true
	return j
}

func TestForecasts(t *testing.T) {
	t.Parallel()
	type when struct {
		start, end int // minutes from now; -1: not known
		why        string
	}
	for _, c := range []struct {
		name  string
		input estimate.Input
		want  []when
	}{
		{
			"one after another on one collector",
			estimate.Input{Collectors: map[string]int{"a": 1}, Requests: []estimate.Request{
				{ID: "1", Jobs: []estimate.Job{waiting(10), waiting(5)}}, {ID: "2", Jobs: []estimate.Job{waiting(3)}},
			}},
			[]when{{start: 0, end: 15}, {start: 15, end: 18}},
		},
		{
			"two collectors share the jobs of one request; the next one waits for its last",
			estimate.Input{Collectors: map[string]int{"a": 2}, Requests: []estimate.Request{
				{ID: "1", Jobs: []estimate.Job{waiting(10), waiting(5), waiting(2)}}, {ID: "2", Jobs: []estimate.Job{waiting(3)}},
			}},
			[]when{{start: 0, end: 10}, {start: 10, end: 13}},
		},
		{
			"with two slots the idle collector is used",
			estimate.Input{Slots: 2, Collectors: map[string]int{"a": 2}, Requests: []estimate.Request{
				{ID: "1", Jobs: []estimate.Job{waiting(10), waiting(5)}}, {ID: "2", Jobs: []estimate.Job{waiting(3)}}, {ID: "3", Jobs: []estimate.Job{waiting(4)}},
			}},
			[]when{{start: 0, end: 10}, {start: 0, end: 8}, {start: 8, end: 12}},
		},
		{
			"running jobs keep their collectors for the rest of their time",
			estimate.Input{Collectors: map[string]int{"a": 1}, Requests: []estimate.Request{
				{ID: "1", Admitted: true, Jobs: []estimate.Job{waiting(5), runs(2)}}, {ID: "2", Jobs: []estimate.Job{waiting(3)}},
			}},
			[]when{{start: -1, end: 7}, {start: 7, end: 10}},
		},
		{
			"pools do not wait for each other",
			estimate.Input{Collectors: map[string]int{"a": 1, "b": 1}, Requests: []estimate.Request{
				{ID: "1", Jobs: []estimate.Job{waiting(5), {TaskQueue: "b", Rest: 2 * time.Minute}}},
			}},
			[]when{{start: 0, end: 5}},
		},
		{
			"a child waits for its parent also where a slot is free",
			estimate.Input{Slots: 2, Collectors: map[string]int{"a": 2}, Requests: []estimate.Request{
				{ID: "1", Jobs: []estimate.Job{waiting(10)}}, {ID: "2", Parent: "1", Jobs: []estimate.Job{waiting(3)}},
			}},
			[]when{{start: 0, end: 10}, {start: 10, end: 13}},
		},
		{
			"who waits for its parent lets others pass",
			estimate.Input{Slots: 2, Collectors: map[string]int{"a": 2}, Requests: []estimate.Request{
				{ID: "1", Admitted: true, Jobs: []estimate.Job{runs(10)}}, {ID: "2", Parent: "1", Jobs: []estimate.Job{waiting(3)}},
				{ID: "3", Jobs: []estimate.Job{waiting(4)}}, {ID: "4", Parent: "2", Jobs: []estimate.Job{waiting(1)}}, {ID: "5", Jobs: []estimate.Job{waiting(20)}},
			}},
			[]when{{start: -1, end: 10}, {start: 10, end: 13}, {start: 0, end: 4}, {start: 13, end: 14}, {start: 4, end: 24}},
		},
		{
			"what nobody can foresee has no estimate, nor what waits for it",
			estimate.Input{Collectors: map[string]int{"a": 1}, Requests: []estimate.Request{
				{ID: "1", Unforeseeable: "waits for its artifacts"}, {ID: "2", Parent: "1"}, {ID: "3", Jobs: []estimate.Job{waiting(3)}},
			}},
			[]when{{start: -1, end: -1, why: "waits for its artifacts"}, {start: -1, end: -1, why: "waits for request 1, which has no estimate"}, {start: 0, end: 3}},
		},
		{
			"a pool without a live collector",
			estimate.Input{Collectors: map[string]int{"a": 0}, Requests: []estimate.Request{{ID: "1", Jobs: []estimate.Job{waiting(3)}}, {ID: "2"}}},
			[]when{{start: 0, end: -1, why: "no live collector serves a"}, {start: -1, end: -1, why: "waits for requests whose end is not known"}},
		},
		{
			"a job that runs on a collector that is gone",
			estimate.Input{Requests: []estimate.Request{{ID: "1", Admitted: true, Jobs: []estimate.Job{runs(3)}}}},
			[]when{{start: -1, end: -1, why: "a job runs where no live collector is"}},
		},
		{
			"jobs that are not known take the request's time and no collector",
			estimate.Input{Requests: []estimate.Request{{ID: "1", Alone: time.Hour}, {ID: "2", Alone: time.Hour}}},
			[]when{{start: 0, end: 60}, {start: 60, end: 120}},
		},
		{
			"one that nobody admits starts at once, in turns with what others have",
			estimate.Input{
				Collectors: map[string]int{"a": 1}, Others: []estimate.Job{runs(2), waiting(10), waiting(10)},
				Requests: []estimate.Request{{ID: "1", NoSlot: true, Jobs: []estimate.Job{waiting(3)}}},
			},
			[]when{{start: 0, end: 15}},
		},
		{
			"more in progress than there are slots now",
			estimate.Input{Collectors: map[string]int{"a": 3}, Requests: []estimate.Request{
				{ID: "1", Admitted: true, Jobs: []estimate.Job{runs(2)}}, {ID: "2", Admitted: true, Jobs: []estimate.Job{runs(9)}}, {ID: "3", Jobs: []estimate.Job{waiting(1)}},
			}},
			[]when{{start: -1, end: 2}, {start: -1, end: 9}, {start: 9, end: 10}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.input.Now = now
			got := make([]when, 0, len(c.want))
			minutes := func(at time.Time) int {
				if at.IsZero() {
					return -1
				}
				return int(at.Sub(now).Minutes())
			}
			for _, f := range estimate.Forecasts(c.input) {
				got = append(got, when{minutes(f.Start), minutes(f.End), f.Why})
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestMoreCapacityNeverDelays: if requests cannot overtake each other, more collectors, more slots and shorter jobs never
// make a forecast later.
func TestMoreCapacityNeverDelays(t *testing.T) {
	t.Parallel()
	for _, help := range []struct {
		name string
		with func(random *rand.Rand, q *estimate.Input)
	}{
		{"a collector more", func(random *rand.Rand, q *estimate.Input) {
			name := []string{"a", "b"}[random.IntN(2)]
			q.Collectors = map[string]int{"a": q.Collectors["a"], "b": q.Collectors["b"]}
			q.Collectors[name]++
		}},
		{"a slot more", func(_ *rand.Rand, q *estimate.Input) { q.Slots++ }},
		{"shorter jobs", func(random *rand.Rand, q *estimate.Input) {
			q.Requests = slices.Clone(q.Requests)
			for i := range q.Requests {
				q.Requests[i].Jobs = slices.Clone(q.Requests[i].Jobs)
				for k := range q.Requests[i].Jobs {
					q.Requests[i].Jobs[k].Rest = time.Duration(random.Int64N(int64(q.Requests[i].Jobs[k].Rest) + 1))
				}
			}
		}},
		{"nobody else", func(_ *rand.Rand, q *estimate.Input) { q.Others = nil }},
	} {
		t.Run(help.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(5, 6))
			sooner := 0
			for range 5_000 {
				q := randomInput(random)
				q.Collectors["a"]++ // each pool has one
				if q.Slots > 1 || help.name == "a slot more" {
					for i := range q.Requests {
						q.Requests[i].Parent = ""
					}
				}
				before := estimate.Forecasts(q)
				helped := q
				help.with(random, &helped)
				after := estimate.Forecasts(helped)
				for i := range before {
					require.False(t, later(after[i].End, before[i].End), "request %d ends later: %+v", i, q)
					require.False(t, later(after[i].Start, before[i].Start) && !q.Requests[i].Admitted, "request %d starts later: %+v", i, q)
					if later(before[i].End, after[i].End) {
						sooner++
					}
				}
			}
			require.Positive(t, sooner, "the help never helped")
		})
	}
}

// later compares times; an unknown one is the latest.
func later(a, b time.Time) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() && !b.IsZero()
	}
	return a.After(b)
}

func TestForecastsKeepTheBounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for range 5_000 {
		q := randomInput(random)
		forecasts := estimate.Forecasts(q)
		require.Len(t, forecasts, len(q.Requests))
		for i, f := range forecasts {
			require.Equal(t, f.End.IsZero(), f.Why != "", "an end or a reason: %+v", q)
			if f.End.IsZero() {
				continue
			}
			require.False(t, f.End.Before(now))
			for _, j := range q.Requests[i].Jobs {
				require.False(t, f.End.Before(now.Add(j.Rest)), "shorter than its longest job: %+v", q)
			}
			if parent := q.Requests[i].Parent; parent != "" && !q.Requests[i].Admitted {
				at := slices.IndexFunc(q.Requests, func(r estimate.Request) bool { return r.ID == parent })
				require.False(t, f.Start.Before(forecasts[at].End), "before its parent: %+v", q)
			}
			// Never more at once than there are slots, apart from those already running.
			running := 0
			for k, other := range forecasts {
				if !other.Start.After(f.Start) && other.End.After(f.Start) && !q.Requests[k].NoSlot {
					running++
				}
			}
			if !q.Requests[i].Admitted && !q.Requests[i].NoSlot && f.End.After(f.Start) {
				require.LessOrEqual(t, running, q.Slots, "%+v", q)
			}
		}
	}
}

func randomInput(random *rand.Rand) estimate.Input {
	job := func() estimate.Job {
		return estimate.Job{
			TaskQueue: []string{"a", "b"}[random.IntN(2)], Rest: time.Duration(random.IntN(20)) * time.Minute, Running: random.IntN(6) == 0,
		}
	}
	q := estimate.Input{Now: now, Slots: 1 + random.IntN(3), Collectors: map[string]int{"a": random.IntN(4), "b": 1 + random.IntN(3)}}
	admitted := random.IntN(q.Slots + 1)
	for i := range random.IntN(8) {
		r := estimate.Request{ID: fmt.Sprint(i), Admitted: i < admitted, NoSlot: random.IntN(12) == 0}
		if random.IntN(10) == 0 && !r.Admitted {
			r.Unforeseeable = "waits for its artifacts"
		}
		if i > 0 && random.IntN(4) == 0 && !r.NoSlot {
			if parent := q.Requests[random.IntN(i)]; !parent.NoSlot {
				r.Parent = parent.ID
			}
		}
		for range random.IntN(5) {
			j := job()
			j.Running = j.Running && r.Admitted
			r.Jobs = append(r.Jobs, j)
		}
		q.Requests = append(q.Requests, r)
	}
	for range random.IntN(4) {
		q.Others = append(q.Others, job())
	}
	return q
}
