package results

import (
	"cmp"
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Session is a session in which two artifacts were measured in turns.
type Session = store.SessionInTurns

// WithTurns adds to stored series what was measured in turns, as evidence beside the stored values. Series that were only
// measured in turns have no stored values. The evidence of a series comes from one surrounding: that with the most pairs,
// among equals alone before co-located and a larger size class before a smaller one.
func WithTurns(facts Facts, stored []stats.Series, sessions []Session) []report.Series {
	return decisions{}.series(facts, stored, sessions, new(memory))
}

// series returns the series of a comparison with their evidence, and the verdicts that are stored, in the given memory.
func (d decisions) series(facts Facts, stored []stats.Series, sessions []Session, in *memory) []report.Series {
	evidence := d.bySurrounding(sessions)
	out := slices.Grow(in.series[:0], len(stored)+len(evidence))
	in.told = slices.Grow(in.told[:0], d.count+1)[:d.count+1]
	told := in.told // the last one is for what has no verdict
	add := func(k seriesKey, s *stats.Series) {
		out = append(out, report.Series{
			Series: *s, Deciding: verdict.Deciding(s.Metric),
			Evidence: verdict.Evidence{Exact: s.Exact, Delta: verdict.Delta(s.Metric, s.Exact)},
		})
		one := &out[len(out)-1]
		if d.decide(one, k, evidence[k], &told[0]); one.Stored != nil {
			told = told[1:]
		}
		if len(one.A)+len(one.B)+len(one.Evidence.Sessions) == 0 {
			out = out[:len(out)-1]
		}
	}
	for i := range stored {
		k := seriesKey{TestCase(stored[i].TestCase), Metric(stored[i].Key)}
		add(k, &stored[i])
		delete(evidence, k)
	}
	names := newNaming(facts)
	for _, k := range slices.Collect(maps.Keys(evidence)) {
		s := names.series(k, nil, nil)
		add(k, &s)
	}
	sortByKey(out, func(s *report.Series) *stats.Key { return &s.Key })
	in.series = out
	return out
}

// bySurrounding returns the sessions of each series, all from one surrounding.
func (d decisions) bySurrounding(sessions []Session) map[seriesKey][]Session {
	places := make(map[seriesKey]map[bench.Surrounding][]Session)
	for _, s := range sessions {
		k := seriesKey{s.TestCase, s.Metric}
		if places[k] == nil {
			places[k] = make(map[bench.Surrounding][]Session)
		}
		places[k][s.Surrounding] = append(places[k][s.Surrounding], s)
	}
	out := make(map[seriesKey][]Session, len(places))
	for k, of := range places {
		if row, stored := d.row(k); stored && of[row.Surrounding] != nil {
			out[k] = of[row.Surrounding]
			continue
		}
		var best bench.Surrounding
		for where, candidates := range of {
			more := cmp.Compare(pairsIn(candidates), pairsIn(out[k]))
			if out[k] == nil || more > 0 || more == 0 && before(where, best) {
				best, out[k] = where, candidates
			}
		}
	}
	return out
}

func pairsIn(sessions []Session) int {
	n := 0
	for _, s := range sessions {
		n += len(s.A)
	}
	return n
}
