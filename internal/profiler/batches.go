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

// batches gathers values until they are taken. It is bounded and refuses further values.
type batches struct {
	attempt, host string

	mu sync.Mutex
	// places has the series that were admitted.
	places map[Series]*place
	system int // number of system series among them
	absent map[Series]string
	closed bool
}

// place gathers a series: its values since the last take, and the number of all values and batches so far.
type place struct {
	open            Batch
	values, batches int
	// usual is the size of the last batch.
	usual int
}

func newBatches(attempt, host string) *batches {
	return &batches{attempt: attempt, host: host, places: map[Series]*place{}, absent: map[Series]string{}}
}

// point is a value with its place in time.
type point struct {
	value float64
	at    time.Time
	index int
}

// add keeps a value of a series and reports whether there was room for it. After close nothing is kept.
func (b *batches) add(s Series, p point) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keep(b.admit(s), p)
}

// addAll keeps the values of a sample, and returns how many of them there was no room for.
func (b *batches) addAll(fresh []*track, at time.Time, index int) (refused int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range fresh {
		if t.place == nil && !math.IsNaN(t.value) {
			t.place = b.admit(t.Series)
		}
		if !b.keep(t.place, point{value: t.value, at: at, index: index}) {
			refused++
		}
	}
	return refused
}

// admit returns the place of a series, or nil if it gets none. The caller holds the lock.
func (b *batches) admit(s Series) *place {
	if at, known := b.places[s]; known {
		return at
	}
	timings := len(b.places) - b.system
	full := s.Scope == ScopeTiming && timings >= MaxTimingSeries || s.Scope != ScopeTiming && b.system >= MaxSystemSeries
	if b.closed || full || !validName(s) {
		return nil
	}
	if s.Scope != ScopeTiming {
		b.system++
	}
	at := &place{open: Batch{Series: s, Unit: s.Unit(), Attempt: b.attempt, Host: b.host}}
	b.places[s] = at
	return at
}

// keep keeps a value, and reports whether there was room for it. The caller holds the lock.
func (b *batches) keep(at *place, p point) bool {
	if at == nil || b.closed || at.values >= MaxValues || math.IsNaN(p.value) || math.IsInf(p.value, 0) {
		return false
	}
	open := &at.open
	if len(open.Values) == 0 {
		open.Sequence = at.batches
		at.batches++
		open.Values, open.Batches, open.Times = make([]float64, 0, at.usual), make([]int, 0, at.usual), make([]time.Time, 0, at.usual)
	}
	at.values++
	open.Values = append(open.Values, p.value)
	open.Batches = append(open.Batches, p.index)
	open.Times = append(open.Times, p.at)
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

// take returns what was gathered since the last call.
func (b *batches) take() Upload {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken()
}

// close returns what is left and makes batches refuse everything.
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
	for _, series := range slices.SortedFunc(maps.Keys(b.places), Series.compare) {
		at := b.places[series]
		if at.usual = len(at.open.Values); at.usual == 0 {
			continue
		}
		u.Batches = append(u.Batches, at.open)
		at.open.Values, at.open.Batches, at.open.Times = nil, nil, nil
	}
	return u
}
