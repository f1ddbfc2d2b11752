package profiler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// meterInterval is the time between two readings during a measured command.
	meterInterval = time.Second
	// shortest is the shortest time in which the growth of a counter counts as a maximum: kernels update counters in steps.
	shortest = meterInterval / 2
)

// Meter sums up a whole attempt, including the time when its agent is not active: it reads the collectors at the beginning and the
// end of each measured command, and every second in between. Begin, End and Close wait for a reading, but at most half an interval of
// samples: after a slower one, there are no more. They are called from one goroutine, Phase from any.
type Meter struct {
	cancel context.CancelFunc
	// asked has the requests to the reading goroutine.
	asked    chan func(context.Context, *readings)
	lost     bool // a reading has taken too long
	commands []Command

	mu      sync.Mutex
	phases  map[string]*PhaseSummary
	dropped int64
}

// NewMeter returns a meter of collectors, which it closes. There are no readings after the end of the context. Now is the clock.
func NewMeter(ctx context.Context, job, machine []Collector, now func() time.Time) *Meter {
	ctx, cancel := context.WithCancel(ctx)
	m := &Meter{cancel: cancel, asked: make(chan func(context.Context, *readings)), phases: map[string]*PhaseSummary{}}
	r := &readings{now: now, sums: map[Series]*SeriesSummary{}}
	for _, s := range append(sources(ScopeJob, job), sources(ScopeMachine, machine)...) {
		r.sources = append(r.sources, &metered{source: s})
	}
	go r.run(ctx, m.asked)
	return m
}

// Begin tells of a measured command that begins now. Batch indexes ascend.
func (m *Meter) Begin(c Command) {
	if len(m.commands) >= MaxCommands {
		m.drop(1)
		return
	}
	c.Artifact, c.Case = shown(c.Artifact, MaxLabelBytes), shown(c.Case, MaxLabelBytes)
	m.commands = append(m.commands, c)
	m.ask(func(ctx context.Context, r *readings) { r.begin(ctx, c.Batch) })
}

// End tells that the command has ended.
func (m *Meter) End() { m.ask(func(ctx context.Context, r *readings) { r.end(ctx) }) }

// Phase tells of a phase that has ended.
func (m *Meter) Phase(name string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.phases[name]
	if took < 0 || p == nil && (len(m.phases) >= MaxTimingSeries || !validName(Series{Scope: ScopeTiming, Name: name})) {
		m.dropped++
		return
	}
	if p == nil {
		p = &PhaseSummary{Name: name}
		m.phases[name] = p
	}
	p.Count++
	p.TotalSeconds += took.Seconds()
	p.LongestSeconds = max(p.LongestSeconds, took.Seconds())
}

// Close ends the meter. It returns the summary, and how much exceeded its bounds.
func (m *Meter) Close() (sum Summary, dropped int64) {
	read := make(chan *readings, 1) // they no longer change
	m.ask(func(_ context.Context, r *readings) { read <- r })
	if !m.lost {
		r := <-read
		for _, series := range slices.SortedFunc(maps.Keys(r.sums), Series.compare) {
			sum.Series = append(sum.Series, *r.sums[series])
		}
		dropped = r.dropped
	}
	m.cancel()
	sum.Commands = m.commands
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.phases)) {
		sum.Phases = append(sum.Phases, *m.phases[name])
	}
	return sum, dropped + m.dropped
}

func (m *Meter) drop(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped += n
}

// ask has the reading goroutine do something, and waits for it for as long as a reading may take.
func (m *Meter) ask(do func(context.Context, *readings)) {
	if m.lost {
		return
	}
	done := make(chan struct{})
	late := time.NewTimer(slowest)
	defer late.Stop()
	select {
	case m.asked <- func(ctx context.Context, r *readings) { defer close(done); do(ctx, r) }:
	case <-late.C:
		m.lost = true
		return
	}
	select {
	case <-done:
	case <-late.C:
		m.lost = true
	}
}

// readings sum up the present and all earlier commands of a meter. Only its goroutine uses them.
type readings struct {
	now     func() time.Time
	sources []*metered
	sums    map[Series]*SeriesSummary
	pairs   int
	dropped int64
	// during is the batch index of the present command; nil if none runs.
	during *int
	tick   *time.Ticker
}

// metered is a source with its readings of the present command.
type metered struct {
	*source
	at     time.Time // of its last reading
	totals map[Series]float64
	spans  map[Series]*span
}

// span is a series during the present command.
type span struct {
	// area is the sum of each value multiplied by its time in seconds.
	area, time float64
	// last is the newest value, most the largest one; nil if none counts.
	last float64
	most *float64
}

// run does what is asked, and takes a reading every second of a command.
func (r *readings) run(ctx context.Context, asked <-chan func(context.Context, *readings)) {
	defer func() {
		for _, s := range r.sources {
			_ = s.close() // its errors have shown: it had no readings
		}
	}()
	r.tick = time.NewTicker(meterInterval)
	defer r.tick.Stop()
	for {
		select {
		case do := <-asked:
			do(ctx, r)
		case <-ctx.Done():
			return
		case <-r.tick.C:
			if r.during != nil {
				r.read(ctx)
			}
		}
	}
}

func (r *readings) begin(ctx context.Context, index int) {
	for _, s := range r.sources {
		s.at, s.totals, s.spans = time.Time{}, map[Series]float64{}, map[Series]*span{}
	}
	r.during = &index
	r.tick.Reset(meterInterval)
	r.read(ctx)
}

func (r *readings) end(ctx context.Context) {
	if r.during == nil {
		return
	}
	r.read(ctx)
	index := *r.during
	r.during = nil
	for _, s := range r.sources {
		for series, sp := range s.spans {
			r.sum(series, index, sp)
		}
	}
}

// read takes a reading of each source. One that fails has no value until the next reading.
func (r *readings) read(ctx context.Context) {
	for _, s := range r.sources {
		now := r.now()
		var c Collected
		err := guarded(func() (err error) {
			c, err = s.Collect(ctx)
			return err
		})
		if err == nil {
			s.take(c, now)
		}
	}
}

func (s *metered) take(c Collected, now time.Time) {
	passed := now.Sub(s.at)
	first := s.at.IsZero()
	s.at = now
	for _, v := range c.Values {
		series := Series{Scope: s.scope, Name: string(v.Metric), Device: v.Device}
		if !validName(series) {
			continue
		}
		value := v.Value
		if v.Counter {
			before, known := s.totals[series]
			s.totals[series] = v.Value
			if !known || passed <= 0 || v.Value < before {
				continue
			}
			value = (v.Value - before) / passed.Seconds()
			if series.Unit() == Ratio {
				value = min(value, 1)
			}
		}
		sp := s.spans[series]
		if sp == nil {
			sp = &span{}
			s.spans[series] = sp
		}
		sp.last = value
		if !first {
			sp.area, sp.time = sp.area+value*passed.Seconds(), sp.time+passed.Seconds()
		}
		if !v.Counter || passed >= shortest {
			if sp.most == nil || value > *sp.most {
				sp.most = &value
			}
		}
	}
}

// sum adds a command to the summary of a series.
func (r *readings) sum(series Series, index int, sp *span) {
	s := r.sums[series]
	if r.pairs >= MaxSummarized || s == nil && len(r.sums) >= MaxSystemSeries {
		r.dropped++
		return
	}
	if s == nil {
		s = &SeriesSummary{Series: series, Unit: series.Unit()}
		r.sums[series] = s
	}
	mean := sp.last
	if sp.time > 0 {
		mean = sp.area / sp.time
	}
	most := mean
	if sp.most != nil {
		most = max(*sp.most, mean)
	}
	r.pairs++
	s.Batches, s.Mean, s.Max = append(s.Batches, index), append(s.Mean, mean), append(s.Max, most)
}
