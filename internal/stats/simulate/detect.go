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

// history is the simulation's memory of a series beside its values.
type history struct {
	levels  [window]float64 // Hodges-Lehmann estimates of the sessions' logarithms, as a ring
	centers [longest]center // of the levels up to each of the newest commits but the last, as a ring
	tried   []tried
	// The spread of a session and the centers of the older levels, for both rules, as last computed, and the number of
	// commits since.
	sigma, center, early float64
	age                  int
}

// center is the Hodges-Lehmann estimate of the levels up to a commit.
type center struct {
	at    int // the commit, counted from 1; 0: not computed
	value float64
}

// tried is a suspicion that was not confirmed.
type tried struct {
	commit int
	suspect.Tried
}

// set stores a session. One of a past commit changes the course of history: all that was computed is dropped.
func (h *history) set(commit int, values []float64, newest bool) {
	var logarithms [sessionSize]float64
	for i, v := range values {
		logarithms[i] = math.Log(v)
	}
	h.levels[commit%window] = paired.Estimate(logarithms[:])
	if !newest {
		h.centers, h.age = [longest]center{}, 0
	}
}

// Detection as in internal/suspect, whose constants are not exported.
const (
	longest = 8
	reach   = 60
)

// screened is a series that detection may suspect.
type screened struct {
	series     *series
	t, urgency float64
}

// screen returns the series that may be suspected, the most urgent first: reading the whole history of all series takes
// ten times as long. It computes T from levels that are kept, and must not leave out a series that [suspect.Find] finds.
func (p *project) screen() []screened {
	var found []screened
	levels := make([]float64, 0, window)
	for i := range p.series {
		s := &p.series[i]
		if !s.metric.deciding {
			continue
		}
		levels = s.history.since(p.first(), p.commit, levels[:0])
		t, k := s.history.largestT(levels, p.commit)
		if suspect.Suspected(math.Abs(t), k, suspect.PrimaryThreshold) && !p.quiet(s, t) {
			found = append(found, screened{s, math.Abs(t), suspect.Urgency(math.Abs(t), k)})
		}
	}
	slices.SortStableFunc(found, func(x, y screened) int { return cmp.Compare(y.urgency, x.urgency) })
	return found
}

// since appends the levels of a range of commits.
func (h *history) since(first, newest int, levels []float64) []float64 {
	from, to := first%window, newest%window+1
	if from < to {
		return append(levels, h.levels[from:to]...)
	}
	return append(append(levels, h.levels[from:]...), h.levels[:to]...)
}

// largestT returns the largest T of the newest commits and their number, negative if they are below those before; with too little history to
// tell, it is infinite. It may be 0 if it is clearly below the threshold.
func (h *history) largestT(levels []float64, commit int) (t float64, commits int) {
	settled := levels[:max(0, len(levels)-longest)]
	if len(settled) < longest {
		return math.Inf(1), 1
	}
	drifting := len(levels) > reach+longest
	// Most series end here: even a spread much below the last known one would not make them suspects.
	if h.age != 0 && h.age < stale && !h.outlying(levels, shrunk*h.sigma, drifting) {
		h.age++
		return 0, 1
	}
	h.sigma, h.age = noise.SessionSpread(settled[max(0, len(settled)-reach):]), 1
	h.center = h.centerBefore(levels, longest, commit)
	if drifting {
		h.early = paired.Estimate(levels[:len(levels)-reach])
	}
	if !h.outlying(levels, h.sigma, drifting) {
		return 0, 1
	}
	best, commits := 0.0, 1
	for k := 1; k <= longest; k++ {
		mean, unit := average(levels[len(levels)-k:]), unit(levels, k, k, h.sigma)
		if math.Abs(mean-h.center) < roughly*unit {
			continue
		}
		if t := (mean - h.centerBefore(levels, k, commit)) / unit; math.Abs(t) > math.Abs(best) {
			best, commits = t, k
		}
	}
	if drifting && !suspect.Suspected(math.Abs(best), commits, suspect.PrimaryThreshold) {
		unit := unit(levels, longest, reach, h.sigma)
		best, commits = (average(levels[len(levels)-longest:])-h.early)/unit, reach
	}
	return best, commits
}

// centerBefore returns the Hodges-Lehmann estimate of the levels before the newest k, which serves as long as these are among
// the newest.
func (h *history) centerBefore(levels []float64, k, commit int) float64 {
	end := commit - k + 1
	c := &h.centers[end%longest]
	if c.at != end {
		older := levels[:len(levels)-k]
		*c = center{end, paired.Estimate(older[max(0, len(older)-reach):])}
	}
	return c.value
}

// outlying reports whether the newest levels may be far from those before.
func (h *history) outlying(levels []float64, sigma float64, drifting bool) bool {
	sum := 0.0
	for k := 1; k <= longest; k++ {
		sum += levels[len(levels)-k]
		if math.Abs(sum/float64(k)-h.center) >= roughly*unit(levels, k, k, sigma) {
			return true
		}
	}
	return drifting && math.Abs(sum/longest-h.early) >= roughly*unit(levels, longest, reach, sigma)
}

// Constants of the screen: the least share of a series' spread that is left after some commits, the T by an earlier center
// below which that by the present one is not looked at, and the number of commits for which both are kept.
const (
	shrunk  = 0.75
	roughly = suspect.PrimaryThreshold - 1.3
	stale   = 4
)

// unit returns the standard deviation of the difference between the newest k levels and those before the newest few.
func unit(levels []float64, k, newest int, sigma float64) float64 {
	older := min(len(levels)-newest, reach)
	return sigma * math.Sqrt(1/float64(k)+1/float64(older))
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
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
	h.Tried = p.triedOf(s)
	return h
}

func (p *project) triedOf(s *series) []suspect.Tried {
	var before []suspect.Tried
	for _, t := range s.history.tried {
		t.Ago = p.commit - t.commit
		before = append(before, t.Tried)
	}
	return before
}

// quiet reports whether a change was suspected lately and not reproduced.
func (p *project) quiet(s *series, t float64) bool {
	return len(s.history.tried) > 0 && suspect.Series{Tried: p.triedOf(s)}.Quiet(t)
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
