package pages

import (
	"slices"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

const (
	// maxKeptSamples bounds the samples that are kept, in bytes: those of some dozen runs of five minutes with 21 series.
	maxKeptSamples = 48 << 20
	// keptSamplesFor is longer than the pause between two uploads of a run, which is ten seconds.
	keptSamplesFor = time.Minute
)

// keptSamples keeps what was read of runs that go on: their pages are read again with each upload, and then need only what has
// arrived since.
type keptSamples struct {
	cache *ttlcache.Cache[samplesKey, readPart]
}

// samplesKey is the key of kept samples: different filters read different series.
type samplesKey struct {
	run     bench.RunID
	attempt string
	scope   profiler.Scope
	metric  profiler.Metric
}

// readPart is the part of an attempt's samples that was read. It is not changed once it is kept.
type readPart struct {
	batches []profiler.Batch
	summary *profiler.Summary
	// next continues the reading; values counts the values read so far.
	next, values int
	// asked lists the series that were asked for.
	asked []string
}

func newKeptSamples(bytes uint64) keptSamples {
	const perBatch, perValue = 200, 8 + 8 + 24 // of its value, batch index and time
	return keptSamples{ttlcache.New(
		ttlcache.WithTTL[samplesKey, readPart](keptSamplesFor),
		ttlcache.WithMaxCost(bytes, func(item ttlcache.CostItem[samplesKey, readPart]) uint64 {
			return uint64(perBatch*len(item.Value.batches) + perValue*item.Value.values)
		}),
	)}
}

// of returns what is kept of an attempt; the zero value if that lacks a requested series. A series that has appeared since was
// not asked for before, and may have come with the part that was read last.
func (k keptSamples) of(key samplesKey, names []string) readPart {
	item := k.cache.Get(key)
	if item == nil || slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(item.Value().asked, name) }) {
		return readPart{}
	}
	return item.Value()
}

// keep keeps what was read of an attempt that goes on.
func (k keptSamples) keep(key samplesKey, part readPart) { k.cache.Set(key, part, ttlcache.DefaultTTL) }

// drop forgets an attempt whose page is not read again on its own.
func (k keptSamples) drop(key samplesKey) { k.cache.Delete(key) }

// read reads what has arrived of an attempt since the part before. It reports whether there is more than a page shows.
func (p readPart) read(v *visit, id bench.RunID, of apiclient.ProfileAttempt, names []string) (readPart, bool, error) {
	p.batches, p.asked = slices.Clip(p.batches), names // the part before stays as it is
	for {
		page, err := v.api.ProfileMetrics(v.Context(), id, p.next, names...)
		if err != nil {
			return p, false, err
		}
		for _, b := range page.Batches {
			p.values += len(b.Values)
			if b.Attempt == of.Attempt {
				p.batches = append(p.batches, b)
			}
		}
		for _, summary := range page.Summaries {
			if summary.Attempt == of.Attempt {
				p.summary = &summary.Summary
			}
		}
		p.next = page.Next
		if !page.More {
			return p, false, nil
		}
		if p.values >= maxSampled {
			return p, true, nil
		}
	}
}
