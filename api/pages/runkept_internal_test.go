package pages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// sampledRun is a run whose uploads arrive one after another, and an API that answers two of them at once.
type sampledRun struct {
	API
	uploads [][]profiler.Batch
	// asked lists where each call began, answered counts the batches.
	asked    []int
	answered int
}

func (r *sampledRun) ProfileMetrics(_ context.Context, _ bench.RunID, from int, series ...string) (page apiclient.ProfileMetrics, err error) {
	r.asked = append(r.asked, from)
	page.Next = min(from+2, len(r.uploads))
	page.More = page.Next < len(r.uploads)
	for _, upload := range r.uploads[from:page.Next] {
		for _, b := range upload {
			if slices.Contains(series, b.String()) {
				page.Batches = append(page.Batches, b)
				r.answered++
			}
		}
	}
	return page, nil
}

// listed returns the attempt as the API lists it now.
func (r *sampledRun) listed() apiclient.ProfileAttempt {
	out := apiclient.ProfileAttempt{Attempt: "a1"}
	for _, upload := range r.uploads {
		for _, b := range upload {
			at := slices.IndexFunc(out.Series, func(s apiclient.ProfileSeries) bool { return s.Series == b.Series })
			if at < 0 {
				at, out.Series = len(out.Series), append(out.Series, apiclient.ProfileSeries{Series: b.Series, Unit: b.Unit})
			}
			out.Series[at].Values += len(b.Values)
		}
	}
	return out
}

// arrives adds an upload with some values of each series.
func (r *sampledRun) arrives(series ...profiler.Series) {
	var upload []profiler.Batch
	for _, s := range series {
		b := profiler.Batch{Series: s, Unit: s.Unit(), Attempt: "a1", Sequence: len(r.uploads)}
		for i := range 3 {
			b.Values, b.Batches = append(b.Values, float64(10*len(r.uploads)+i)), append(b.Batches, 1)
			b.Times = append(b.Times, time.Unix(int64(10*len(r.uploads)+i), 0))
		}
		upload = append(upload, b)
	}
	r.uploads = append(r.uploads, upload)
}

func jobSeries(metric profiler.Metric) profiler.Series {
	return profiler.Series{Scope: profiler.ScopeJob, Name: string(metric)}
}

const liveRun = bench.RunID("abcdefgh23456777-0123abcd")

// read reads the samples as the page with a filter does.
func (r *sampledRun) read(t *testing.T, p *Pages, of apiclient.ProfileAttempt, metric profiler.Metric, over bool) samples {
	t.Helper()
	view := profileView{profileQuery: profileQuery{Metric: metric}, Shown: of}
	plots, _ := view.plots()
	v := visitOf(t, url.Values{})
	v.api = r
	s, cut, err := p.readSamples(v, liveRun, of, view.profileQuery, over, plots)
	require.NoError(t, err)
	require.False(t, cut)
	return s
}

func TestALivePageOfARunAsksOnlyForWhatIsNew(t *testing.T) {
	t.Parallel()
	p := &Pages{samples: newKeptSamples(maxKeptSamples)}
	r := &sampledRun{}
	all := []profiler.Series{jobSeries(profiler.CPUUsed), jobSeries(profiler.MemoryUsed)}
	for range 5 {
		r.arrives(all...)
	}
	require.Len(t, r.read(t, p, r.listed(), "", false).series[all[0]].values, 15)
	require.Equal(t, []int{0, 2, 4}, r.asked)
	r.asked, r.answered = nil, 0
	r.arrives(all...)
	require.Len(t, r.read(t, p, r.listed(), "", false).series[all[0]].values, 18)
	require.Equal(t, []int{5}, r.asked)
	require.Equal(t, 2, r.answered)
	// Another filter shows other series, each with all that there is.
	r.asked = nil
	require.Len(t, r.read(t, p, r.listed(), profiler.MemoryUsed, false).series, 1)
	require.Equal(t, []int{0, 2, 4}, r.asked)
	// Nothing is kept of a run that is over: its page is read again only if somebody asks.
	r.read(t, p, r.listed(), "", true)
	require.Equal(t, 1, p.samples.cache.Len())
}

// Whatever arrives when, and whoever looks, the samples that are shown are those that a page shows that has just been opened.
func TestKeptSamplesAreNeverOutOfDate(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 3))
	all := []profiler.Series{jobSeries(profiler.CPUUsed), jobSeries(profiler.MemoryUsed), {Scope: profiler.ScopeTiming, Name: phaseMeasuring}, {Scope: profiler.ScopeTiming, Name: "uploading"}}
	for core := range 8 {
		all = append(all, profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.CPUUtil), Device: fmt.Sprintf("cpu%d", core)})
	}
	for range 200 {
		p := &Pages{samples: newKeptSamples(maxKeptSamples)}
		r := &sampledRun{}
		for range 12 {
			var some []profiler.Series
			for _, s := range all {
				if random.IntN(2) == 0 {
					some = append(some, s)
				}
			}
			r.arrives(some...)
			of := r.listed()
			if random.IntN(3) == 0 {
				r.arrives(all[random.IntN(len(all))]) // after the list was read
			}
			metric := []profiler.Metric{"", "", profiler.CPUUtil}[random.IntN(3)]
			fresh := r.read(t, &Pages{samples: newKeptSamples(maxKeptSamples)}, of, metric, false)
			require.Equal(t, fresh, r.read(t, p, of, metric, false))
		}
	}
}

func TestKeptSamplesAreBounded(t *testing.T) {
	t.Parallel()
	kept := newKeptSamples(100_000)
	for i := range 100 {
		kept.keep(samplesKey{run: bench.RunID(fmt.Sprint(i))}, readPart{values: 1000, next: 1})
	}
	require.Equal(t, 2, kept.cache.Len())
	require.Zero(t, kept.of(samplesKey{run: "0"}, nil))
	require.Equal(t, 1000, kept.of(samplesKey{run: "99"}, nil).values)
}
