package waittime

import (
	"slices"
	"time"
)

// Reason says why a job could not run.
type Reason string

// Reasons in the order of precedence: a moment at which several apply counts for the first.
const (
	Turn      Reason = "turn"      // no request that waits for it is in its turn
	Input     Reason = "input"     // a job that it needs has not ended
	Pause     Reason = "pause"     // its project is paused
	Limit     Reason = "limit"     // its account has as much under way as it may
	Collector Reason = "collector" // no collector that could run it is live
)

// Reasons returns all reasons, in the order of precedence.
func Reasons() []Reason { return []Reason{Turn, Input, Pause, Limit, Collector} }

// Span is a period that includes From and excludes To. A zero From: it began before anything
// that is known; a zero To: it goes on.
type Span struct{ From, To time.Time }

// within cuts the span to a bounded one. It reports false if nothing remains.
func (s Span) within(bound Span) (Span, bool) {
	if s.From.Before(bound.From) {
		s.From = bound.From
	}
	if s.To.IsZero() || s.To.After(bound.To) {
		s.To = bound.To
	}
	return s, s.From.Before(s.To)
}

// Obstacle is a period in which a job could not run.
type Obstacle struct {
	Reason Reason
	Span
}

// Wait is the time of a job between its readiness and its start.
type Wait struct {
	// Runnable is the first moment at which nothing kept the job from running; its start, or
	// the present, if there was none.
	Runnable time.Time
	// Waited is the time from then on in which nothing kept it from running.
	Waited time.Duration
	// Blocked is the time in which something did, by the reason, each moment counted once.
	Blocked map[Reason]time.Duration
	// Still is the reason that keeps it from running at the end; empty: none does.
	Still Reason
}

// Measure divides the time from a job's readiness to its start, or to the present of a job
// that has not started, by what kept it from running. Waited and Blocked add up to that time.
// An end before the readiness, from a clock that was set, is a wait of 0.
func Measure(ready, end time.Time, obstacles []Obstacle) Wait {
	whole := Span{ready, end}
	w := Wait{Runnable: end, Blocked: make(map[Reason]time.Duration)}
	if !ready.Before(end) {
		return w
	}
	var inside []Obstacle
	cuts := []time.Time{ready, end}
	for _, o := range obstacles {
		if part, some := o.within(whole); some {
			inside = append(inside, Obstacle{o.Reason, part})
			cuts = append(cuts, part.From, part.To)
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)
	begun := false
	for i, from := range cuts[:len(cuts)-1] {
		to := cuts[i+1]
		w.Still = reasonAt(inside, from)
		switch {
		case w.Still != "":
			w.Blocked[w.Still] += to.Sub(from)
		case !begun:
			begun, w.Runnable = true, from
			fallthrough
		default:
			w.Waited += to.Sub(from)
		}
	}
	return w
}

// reasonAt returns the first reason, by precedence, that applies at a moment; empty: none.
func reasonAt(obstacles []Obstacle, at time.Time) Reason {
	for _, reason := range Reasons() {
		if slices.ContainsFunc(obstacles, func(o Obstacle) bool {
			return o.Reason == reason && !at.Before(o.From) && at.Before(o.To)
		}) {
			return reason
		}
	}
	return ""
}

// Gaps returns the parts of a bounded span that none of the others covers, in order.
func Gaps(whole Span, others []Span) []Span {
	sorted := slices.Clone(others)
	slices.SortFunc(sorted, func(a, b Span) int { return a.From.Compare(b.From) })
	var gaps []Span
	at := whole.From
	for _, o := range sorted {
		part, some := o.within(whole)
		if !some {
			continue
		}
		if at.Before(part.From) {
			gaps = append(gaps, Span{at, part.From})
		}
		if part.To.After(at) {
			at = part.To
		}
	}
	if at.Before(whole.To) {
		gaps = append(gaps, Span{at, whole.To})
	}
	return gaps
}
