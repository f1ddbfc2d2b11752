package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/stats/paired"
	"github.com/benchloom/benchloom/internal/suspect"
)

// history is what the simulation remembers of a series beside its values.
type history struct {
	levels [window]float64 // Hodges-Lehmann estimates of the sessions' logarithms, as a ring
	tried  []tried
	sigma  float64 // the spread of a session, as last computed
	age    int     // commits since
}

// tried is a suspicion that was not reproduced.
type tried struct {
	commit int
	t      float64
	up     bool
}

func (h *history) set(commit int, values []float64) {
	var logarithms [sessionSize]float64
	for i, v := range values {
		logarithms[i] = math.Log(v)
	}
	h.levels[commit%window] = paired.Estimate(logarithms[:])
}

// quiet reports whether the same was suspected lately and not reproduced.
func (h *history) quiet(commit int, t float64) bool {
	return slices.ContainsFunc(h.tried, func(before tried) bool {
		return commit-before.commit <= longest && before.up == (t > 0) && math.Abs(t) < before.t+quietGrowth
	})
}

// Detection as in internal/suspect, whose constants are not exported.
const (
	longest = 8
	reach   = 60

	quietGrowth = 0.7
)

// screened is a series that detection may suspect.
type screened struct {
	series *series
	t      float64
}

// screen returns the series that may be suspected, the largest T first: reading the whole history of all series takes
// ten times as long. It computes T from levels that are kept, and must not leave out a series that [suspect.Find] finds.
func (p *project) screen() []screened {
	var found []screened
	levels := make([]float64, 0, window)
	for i := range p.series {
		s := &p.series[i]
		if !s.metric.deciding {
			continue
		}
		levels = levels[:0]
		for commit := p.first(); commit <= p.commit; commit++ {
			levels = append(levels, s.history.levels[commit%window])
		}
		if t := s.history.largestT(levels); math.Abs(t) >= suspect.PrimaryThreshold && !s.history.quiet(p.commit, t) {
			found = append(found, screened{s, math.Abs(t)})
		}
	}
	slices.SortStableFunc(found, func(x, y screened) int { return cmp.Compare(y.t, x.t) })
	return found
}

// largestT returns the largest T of the newest commits, negative if they are below those before; with too little history to
// tell, it is infinite. It may be 0 if it is clearly below the threshold.
func (h *history) largestT(levels []float64) float64 {
	settled := levels[:max(0, len(levels)-longest)]
	if len(settled) < longest {
		return math.Inf(1)
	}
	drifting := len(levels) > reach+longest
	// Most series end here: even a spread much below the last known one would not make them suspects.
	if h.age++; h.age < longest && !outlying(levels, shrunk*h.sigma, drifting) {
		return 0
	}
	h.sigma, h.age = noise.SessionSpread(settled[max(0, len(settled)-reach):]), 0
	best := 0.0
	for k := 1; k <= longest; k++ {
		if t := distance(levels, k, k, h.sigma); math.Abs(t) > math.Abs(best) {
			best = t
		}
	}
	if math.Abs(best) < suspect.PrimaryThreshold && drifting {
		best = distance(levels, longest, reach, noise.SessionSpread(levels[:len(levels)-reach]))
	}
	return best
}

// outlying reports whether the newest levels may be far from those before.
func outlying(levels []float64, sigma float64, drifting bool) bool {
	for k := 1; k <= longest; k++ {
		if far(levels, k, k, sigma) {
			return true
		}
	}
	return drifting && far(levels, longest, reach, sigma)
}

// Of the screen: the share of a series' spread that is left at least after some commits, and the T by mean or median of the
// older sessions below which that by their Hodges-Lehmann estimate, which mostly lies between the two, is not looked at.
const (
	shrunk  = 0.75
	roughly = suspect.PrimaryThreshold - 1
)

// far reports whether the newest k levels may be far from those before the newest few.
func far(levels []float64, k, newest int, sigma float64) bool {
	older, unit := before(levels, k, newest, sigma)
	mean := average(levels[len(levels)-k:])
	return math.Abs(mean-average(older)) >= roughly*unit || math.Abs(mean-middle(older)) >= roughly*unit
}

// distance returns the signed T of the newest k levels and those before the newest few, or 0 if it is clearly below the
// threshold.
func distance(levels []float64, k, newest int, sigma float64) float64 {
	if !far(levels, k, newest, sigma) {
		return 0
	}
	older, unit := before(levels, k, newest, sigma)
	return (average(levels[len(levels)-k:]) - paired.Estimate(older)) / unit
}

// before returns the levels that the newest k are compared with, and the standard deviation of the difference.
func before(levels []float64, k, newest int, sigma float64) (older []float64, unit float64) {
	older = levels[:len(levels)-newest]
	older = older[max(0, len(older)-reach):]
	return older, sigma * math.Sqrt(1/float64(k)+1/float64(len(older)))
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func middle(values []float64) float64 {
	var ascending [reach]float64
	n := copy(ascending[:], values)
	slices.Sort(ascending[:n])
	return ascending[n/2]
}

// mostRead is the number of series whose whole history detection reads, beside those with little. The budget suffices for
// a fraction.
const mostRead = 48

// suspicion is a suspicion with its series.
type suspicion struct {
	suspect.Suspicion
	series   *series
	baseline int // the commit that the newest one is to be measured in turns with
}

// suspects returns the suspicions of the newest commit, without the postponed ones, and the number of all.
func (p *project) suspects() (now []suspicion, all int) {
	candidates := p.screen()
	read := slices.IndexFunc(candidates, func(c screened) bool { return !math.IsInf(c.t, 1) })
	if read < 0 {
		read = len(candidates)
	}
	read = min(max(read, mostRead), len(candidates))
	for _, c := range candidates[read:] {
		if c.t >= threshold(c.series) {
			all++
		}
	}
	candidates = candidates[:read]
	bySeries := make(map[string]*series, len(candidates))
	histories := make([]suspect.Series, len(candidates))
	for i, c := range candidates {
		bySeries[c.series.key.String()] = c.series
		histories[i] = p.historyOf(c.series)
	}
	for _, found := range suspect.Find(histories, suspect.TestCases(p.runs())) {
		all++
		if found.Postponed {
			continue
		}
		s := bySeries[found.Key.String()]
		now = append(now, suspicion{Suspicion: found, series: s, baseline: p.first() + found.Against})
	}
	return now, all
}

func threshold(s *series) float64 { return suspect.Series{Primary: s.primary}.Threshold() }

// first returns the oldest commit that is remembered.
func (p *project) first() int { return max(0, p.commit-window+1) }

// historyOf returns the history of a series as the service reads it.
func (p *project) historyOf(s *series) suspect.Series {
	h := suspect.Series{Key: s.key, Primary: s.primary, Delta: s.metric.delta, Sessions: p.sessions(s, p.commit)}
	for _, t := range s.history.tried {
		h.Tried = append(h.Tried, suspect.Tried{T: t.t, Up: t.up, Ago: p.commit - t.commit})
	}
	return h
}

// sessions returns the sessions of a series up to a commit.
func (p *project) sessions(s *series, newest int) []noise.Session {
	var sessions []noise.Session
	for commit := p.first(); commit <= newest; commit++ {
		sessions = append(sessions, noise.Session{At: time.Unix(int64(commit), 0), Values: s.session(commit)})
	}
	return sessions
}

// measureCanaries measures something in turns with itself, as a collector does once a day, and returns what is learned.
func (p *project) measureCanaries() float64 {
	const days, pairs, spread = 60, 10, 0.01
	canaries := make([]noise.Canary, days)
	for day := range canaries {
		a, b := make([]float64, pairs), make([]float64, pairs)
		p.noise.turns(p.random, day, a, b)
		for i := range a {
			a[i], b[i] = p.noise.value(spread*a[i]), p.noise.value(spread*b[i])
		}
		canaries[day] = noise.Canary{At: time.Unix(int64(day), 0), A: a, B: b}
	}
	tau, _ := noise.Tau(canaries)
	return tau
}
