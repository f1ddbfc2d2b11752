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
	// totals are the counters of the last sample.
	totals  map[Series]total
	trouble rate.Sometimes
}

type total struct {
	value float64
	at    time.Time
}

// sources wraps collectors.
func sources(scope Scope, collectors []Collector) []*source {
	var all []*source
	for _, c := range collectors {
		all = append(all, &source{Collector: c, scope: scope, totals: map[Series]total{}, trouble: rate.Sometimes{Interval: logEvery}})
	}
	return all
}

// slowest is the longest time that a reading may take. The moment of a slower one is not known well enough for a rate.
const slowest = Interval / 2

// sample reads the collector; now is the present time. A failure costs this sample only: the next rate is that since the last
// successful one.
func (s *source) sample(ctx context.Context, now time.Time, clock func() time.Time) (values map[Series]float64, absent []Absence, err error) {
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
	for metric, reason := range collected.Absent {
		absent = append(absent, Absence{Scope: s.scope, Metric: metric, Reason: reason})
	}
	values = make(map[Series]float64, len(collected.Values))
	for _, v := range collected.Values {
		series := Series{Scope: s.scope, Name: string(v.Metric), Device: v.Device}
		unit := series.Unit()
		if unit == "" {
			return nil, nil, fmt.Errorf("%s is no metric", v.Metric)
		}
		value := v.Value
		if v.Counter {
			var ok bool
			if value, ok = s.perSecond(series, v.Value, now); !ok {
				continue
			}
		}
		if unit == Ratio {
			// Counters of the kernel are updated in steps, so that their growth may exceed the time.
			value = min(max(value, 0), 1)
		}
		values[series] = value
	}
	return values, absent, nil
}

// perSecond returns the growth of a counter since the last sample. There is none at first, when no time has passed, and when the
// counter ran backwards: this sample is then the one to start from.
func (s *source) perSecond(series Series, value float64, now time.Time) (float64, bool) {
	before, known := s.totals[series]
	s.totals[series] = total{value: value, at: now}
	passed := now.Sub(before.at)
	if !known || passed <= 0 || value < before.value {
		return 0, false
	}
	return (value - before.value) / passed.Seconds(), true
}

// failed logs what kept a source from being read, at most once a minute.
func (s *source) failed(log *slog.Logger, err error) {
	s.trouble.Do(func() {
		name := "one without a name"
		_ = guarded(func() error { name = s.Name(); return nil })
		log.Warn("the profiler cannot read a source", "source", name, "error", err)
	})
}

func (s *source) close() error { return guarded(func() error { return s.Close() }) }

// turn is the right to record the machine, which one agent of a host has. It keeps it until it leaves.
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
