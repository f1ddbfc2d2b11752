package profiler

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// batches gathers values until they are taken. It is bounded: what is too much is refused.
type batches struct {
	attempt, host string

	mu sync.Mutex
	// open has the values since the last take, history what each series had in total.
	open    map[Series]*Batch
	history map[Series]*extent
	system  int // number of series in history that are no timings
	absent  map[Series]string
	closed  bool
}

type extent struct{ values, batches int }

func newBatches(attempt, host string) *batches {
	return &batches{attempt: attempt, host: host, open: map[Series]*Batch{}, history: map[Series]*extent{}, absent: map[Series]string{}}
}

// point is a value with its place in time.
type point struct {
	series Series
	value  float64
	at     time.Time
	index  int
}

// add keeps a value and reports whether there was room for it. After close nothing is kept.
func (b *batches) add(p point) bool {
	if math.IsNaN(p.value) || math.IsInf(p.value, 0) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	had, known := b.history[p.series]
	if !known {
		if !validName(p.series) {
			return false
		}
		timings := len(b.history) - b.system
		if p.series.Scope == ScopeTiming && timings >= MaxTimingSeries || p.series.Scope != ScopeTiming && b.system >= MaxSystemSeries {
			return false
		}
		had = &extent{}
		b.history[p.series] = had
		if p.series.Scope != ScopeTiming {
			b.system++
		}
	}
	if had.values >= MaxValues {
		return false
	}
	had.values++
	batch, ok := b.open[p.series]
	if !ok {
		batch = &Batch{Series: p.series, Unit: p.series.Unit(), Attempt: b.attempt, Host: b.host, Sequence: had.batches}
		had.batches++
		b.open[p.series] = batch
	}
	batch.Values = append(batch.Values, p.value)
	batch.Batches = append(batch.Batches, p.index)
	batch.Times = append(batch.Times, p.at)
	return true
}

// validName reports whether a series has a unit, and a name that can be shown.
func validName(s Series) bool {
	return s.Name != "" && s.Unit() != "" && fits(s.Name, MaxNameBytes) && fits(s.Device, MaxNameBytes)
}

// fits reports whether a text can be shown, and is not longer than the bound.
func fits(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// shown makes a text fit.
func shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// lack keeps the first reason why a metric is absent.
func (b *batches) lack(a Absence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	series := Series{Scope: a.Scope, Name: string(a.Metric)}
	if _, known := b.absent[series]; !known { // it is told with every sample
		b.absent[series] = shown(a.Reason, MaxReasonBytes)
	}
}

// take returns what was gathered since the last time.
func (b *batches) take() Upload {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken()
}

// close returns what is left, and refuses everything from then on.
func (b *batches) close() Upload {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.taken()
}

func (b *batches) taken() Upload {
	u := Upload{Attempt: b.attempt, Host: b.host}
	for _, series := range slices.SortedFunc(maps.Keys(b.absent), Series.compare) {
		u.Absent = append(u.Absent, Absence{Scope: series.Scope, Metric: Metric(series.Name), Reason: b.absent[series]})
	}
	for _, series := range slices.SortedFunc(maps.Keys(b.open), Series.compare) {
		u.Batches = append(u.Batches, *b.open[series])
	}
	clear(b.open)
	return u
}
