package suspect

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/stats/paired"
)

// track is a series with the level of each session.
type track struct {
	sessions   []noise.Session
	indices    []int // of the sessions among those of the series
	levels     []float64
	logarithms bool
	exact      bool               // the sessions before the newest had no spread
	model      func() noise.Model // of the sessions before the newest
}

// newTrack returns the levels of a series' sessions; ok is false if the newest has no values, or if there is no other.
func newTrack(s Series) (t track, ok bool) {
	for i, session := range s.Sessions {
		disturbed := session.Disturbed
		session.Disturbed = false
		usable := noise.Usable([]noise.Session{session})
		if len(usable) == 0 {
			if i == len(s.Sessions)-1 {
				return track{}, false
			}
			continue
		}
		usable[0].Disturbed = disturbed
		t.sessions, t.indices = append(t.sessions, usable[0]), append(t.indices, i)
	}
	if len(t.sessions) < 2 {
		return track{}, false
	}
	before := t.sessions[:len(t.sessions)-1]
	if !slices.ContainsFunc(before, func(s noise.Session) bool { return !s.Disturbed }) {
		t.sessions = slices.Clone(t.sessions)
		for i := range before {
			t.sessions[i].Disturbed = false // better than nothing
		}
		before = t.sessions[:len(t.sessions)-1]
	}
	t.logarithms = noise.Positive(t.sessions)
	t.levels = noise.Levels(t.sessions, t.logarithms)
	t.exact = noise.WithoutSpread(before)
	t.model = sync.OnceValue(func() noise.Model { return noise.Fit(inOrder(before), s.Lent...) })
	settled := t.sessions[:max(0, len(t.sessions)-longest)]
	offsets := noise.Offsets(settled, t.levels[:len(settled)])
	for i, session := range t.sessions {
		t.levels[i] -= offsets[session.Collector]
	}
	return t, true
}

// inOrder returns the sessions as if they had been measured in the order of their commits.
func inOrder(sessions []noise.Session) []noise.Session {
	ordered := slices.Clone(sessions)
	for i := range ordered {
		ordered[i].At = ordered[0].At
	}
	return ordered
}

// undisturbed returns the levels of undisturbed sessions from one index to before another.
func (t track) undisturbed(from, to int) []float64 {
	var levels []float64
	for i := max(0, from); i < to; i++ {
		if !t.sessions[i].Disturbed {
			levels = append(levels, t.levels[i])
		}
	}
	return levels
}

// candidate compares the newest k commits with those before the newest few. It has no T if there are none.
func (t track) candidate(k, newest int) candidate {
	last, end := len(t.sessions)-1, len(t.sessions)-newest
	older := t.undisturbed(0, end)
	if len(older) == 0 {
		return candidate{}
	}
	sigma := t.spread(len(t.sessions) - longest)
	older = older[max(0, len(older)-history):]
	values := append(t.undisturbed(last+1-k, last), t.levels[last])
	c := candidate{commits: newest, before: paired.Estimate(older)}
	c.change = mean(values) - c.before
	c.error = sigma * math.Sqrt(1/float64(len(values))+1/float64(len(older)))
	if c.change != 0 {
		c.t = min(math.Abs(c.change)/c.error, largestT)
	}
	return c
}

// reachingBack returns a candidate of as many commits as may have changed as well: those whose T is hardly lower. A change that
// came with the first of them is only seen if an earlier commit is measured against, and one that came later is seen, too.
func (t track) reachingBack(best candidate) candidate {
	longer := best
	for k := best.commits + 1; k <= min(longest, len(t.sessions)-1); k++ {
		if t.sessions[len(t.sessions)-k].Disturbed {
			continue // it tells nothing
		}
		if c := t.candidate(k, k); c.t >= best.t-nearlyAsFar && c.change*best.change > 0 {
			longer = c
		}
	}
	return longer
}

// spread returns the standard deviation of a session's level, of the sessions before an index if there are enough. The newest
// commits never count there, so that all their numbers are judged by the same spread.
func (t track) spread(end int) float64 {
	older := t.undisturbed(end-history, end)
	switch {
	case len(older) >= ownSpread:
		return noise.SessionSpread(older)
	case t.model().Logarithms == t.logarithms:
		return t.model().SigmaSession
	default:
		return 0 // only the newest value has no logarithm
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v - values[0]
	}
	return values[0] + sum/float64(len(values))
}

// irrelevant reports whether a change of logarithms is smaller than delta beyond doubt.
func (t track) irrelevant(c candidate, delta float64) bool {
	const doubt = 2
	return t.logarithms && delta > 0 && math.Abs(c.change)+doubt*c.error < math.Log1p(delta)
}

// relative returns a candidate's relative change, 0 if it is undefined.
func (t track) relative(c candidate) float64 {
	switch {
	case t.logarithms:
		return math.Expm1(c.change)
	case c.before > 0:
		return c.change / c.before
	default:
		return 0
	}
}

func (t track) describe(c candidate) string {
	if change := t.relative(c); change != 0 {
		return percent(change)
	}
	return fmt.Sprintf("a change by %s", number(c.change))
}
