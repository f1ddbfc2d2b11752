package profiler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
)

// source is a collector with its memory of the last sample.
type source struct {
	Collector
	scope Scope
	// tracks are the series in the order of their first appearance, which is mostly that of each sample; known has them by name.
	tracks []*track
	known  map[Series]*track
	// fresh are the series of the present sample; samples counts the samples.
	fresh   []*track
	samples int
	// lacking are the metrics whose absence has been reported.
	lacking map[Metric]bool
	trouble rate.Sometimes
}

// track is a series of a source with its last sample.
type track struct {
	Series
	unit  Unit
	value float64
	// sample is the number of that sample.
	sample int
	// total is the counter at that sample, at its time; counted is set once there was one.
	total   float64
	at      time.Time
	counted bool
	// place gathers the values; nil if none has been found.
	place *place
}

// sources wraps collectors.
func sources(scope Scope, collectors []Collector) []*source {
	var all []*source
	for _, c := range collectors {
		all = append(all, &source{Collector: c, scope: scope, known: map[Series]*track{}, lacking: map[Metric]bool{}, trouble: rate.Sometimes{Interval: logEvery}})
	}
	return all
}

// slowest is the longest time that a reading may take. The moment of a slower one is not known well enough for a rate.
const slowest = Interval / 2

// sample reads the collector; now is the present time. It returns the series with a value, valid until the next sample. A failure costs
// this sample only: the next rate is the one since the last successful sample.
//
// It runs ten times a second beside a measurement, so it looks up nothing that it knows from the sample before.
func (s *source) sample(ctx context.Context, now time.Time, clock func() time.Time) (fresh []*track, absent []Absence, err error) {
	var collected Collected
	err = guarded(func() (err error) {
		collected, err = s.Collect(ctx)
		return err
	})
	if took := clock().Sub(now); err == nil && took > slowest {
		err = fmt.Errorf("reading took %s, longer than %s", took.Round(time.Millisecond), slowest)
	}
	if err != nil {
		return nil, nil, err
	}
	s.samples++
	s.fresh = s.fresh[:0]
	for i, v := range collected.Values {
		t := s.track(i, v)
		if t.unit == "" {
			return nil, nil, fmt.Errorf("%s is no metric", v.Metric)
		}
		value := v.Value
		if v.Counter {
			var ok bool
			if value, ok = t.perSecond(v.Value, now); !ok {
				continue
			}
		}
		if t.unit == Ratio {
			// Counters of the kernel are updated in steps, so that their growth may exceed the time.
			value = min(max(value, 0), 1)
		}
		if t.value = value; t.sample != s.samples { // else it was told twice
			t.sample = s.samples
			s.fresh = append(s.fresh, t)
		}
	}
	for metric, reason := range collected.Absent {
		if !s.lacking[metric] {
			s.lacking[metric] = true
			absent = append(absent, Absence{Scope: s.scope, Metric: metric, Reason: reason})
		}
	}
	return s.fresh, absent, nil
}

// track returns the series of a value, the i-th one of its sample.
func (s *source) track(i int, v Value) *track {
	if i < len(s.tracks) {
		if t := s.tracks[i]; t.Name == string(v.Metric) && t.Device == v.Device {
			return t
		}
	}
	series := Series{Scope: s.scope, Name: string(v.Metric), Device: v.Device}
	t := s.known[series]
	if t == nil {
		t = &track{Series: series, unit: series.Unit()}
		// Further values are refused: a source that invents names must not be remembered for each.
		if len(s.tracks) < MaxSystemSeries {
			s.known[series] = t
			s.tracks = append(s.tracks, t)
		}
	}
	return t
}

// perSecond returns the growth of a counter since the last sample. There is none at first, when no time has passed, and when the
// counter ran backwards: then the next growth counts from this sample.
func (t *track) perSecond(value float64, now time.Time) (float64, bool) {
	before, passed, known := t.total, now.Sub(t.at), t.counted
	t.total, t.at, t.counted = value, now, true
	if !known || passed <= 0 || value < before {
		return 0, false
	}
	return (value - before) / passed.Seconds(), true
}

// failed logs the error of a source, at most once a minute.
func (s *source) failed(log *slog.Logger, err error) {
	s.trouble.Do(func() {
		name := "one without a name"
		_ = guarded(func() error { name = s.Name(); return nil })
		log.Warn("the profiler cannot read a source", "source", name, "error", err)
	})
}

func (s *source) close() error { return guarded(func() error { return s.Close() }) }

// turn is the right to record the machine, which one agent of a host has until it leaves.
type turn struct {
	lock    HostLock
	trouble rate.Sometimes
	taken   bool
}

func (t *turn) take() (mine bool, err error) {
	if t.lock == nil || t.taken {
		return t.taken, nil
	}
	err = guarded(func() (err error) {
		t.taken, err = t.lock.TryLock()
		return err
	})
	return t.taken, err
}

func (t *turn) leave() error {
	if !t.taken {
		return nil
	}
	t.taken = false
	return guarded(func() error { return t.lock.Unlock() })
}
