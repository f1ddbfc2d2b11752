package orchestration

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suspect"
	"github.com/benchloom/benchloom/internal/verdict"
)

// history is a series of a request's artifact, with its sessions from the oldest to the
// artifact's own.
type history struct {
	testCase bench.TestCase
	metric   bench.Metric
	bench.Surrounding
	sessions []store.Session
	baseline store.Session
	// past holds the earlier suspicions about the series, by artifact.
	past map[string]store.PastSuspicion
	// taus tells how far the sides of its sessions are apart.
	taus map[sideOffset]float64
	// model is the noise of the sessions before the artifact's own.
	model noise.Model
	// series is the input of the detection.
	series suspect.Series
	// suspicion is nil if there is none.
	suspicion *suspect.Suspicion
}

func (h history) own() store.Session { return h.sessions[len(h.sessions)-1] }

// tau returns how far the sides of a session are apart on a collector, or on any of them
// for "", in units of the spread within; 0: not known.
func (h history) tau(collector string) float64 {
	return h.taus[sideOffset{h.metric, h.Surrounding, collector}]
}

func (h history) key() stats.Key {
	tc := h.testCase
	return stats.Key{
		TestCase: stats.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: string(tc.Target)},
		Metric:   string(h.metric),
	}
}

// exact reports whether the metric has no noise: by its kind, as the suite declares, or as learned.
func (h history) exact() bool { return h.series.Exact || h.model.Has(noise.Exact) }

// detect fills in the models and suspicions of histories.
func (a *Activities) detect(ctx context.Context, suiteHash string, histories []history) error {
	loaded, err := a.Suites.Suite(ctx, suiteHash)
	if err != nil {
		return found(err, "loading the suite")
	}
	taus := make(map[bench.Target]map[sideOffset]float64)
	runs := 0
	counted := make(map[bench.TestCase]bool)
	for i, h := range histories {
		sessions := h.noise()
		h.model = noise.Fit(sessions[:len(sessions)-1])
		target := h.testCase.Target
		if taus[target] == nil {
			if taus[target], err = a.taus(ctx, target); err != nil {
				return err
			}
		}
		h.taus = taus[target]
		h.model.Tau = h.tau("")
		h.series = suspect.Series{
			Key: h.key(), Primary: loaded.Category(h.testCase.Benchmark) == bench.Primary, Exact: loaded.Exact(h.metric),
			Sessions: sessions, Tried: h.tried(),
		}
		h.series.Delta = verdict.Delta(string(h.metric), h.exact())
		histories[i] = h
		if !counted[h.testCase] {
			counted[h.testCase] = true
			runs += len(h.own().Values)
		}
	}
	lent := lenders(histories)
	all := make([]suspect.Series, len(histories))
	for i := range histories {
		histories[i].series.Lent = lent[lenderOf(histories[i])]
		all[i] = histories[i].series
	}
	found := make(map[stats.Key]*suspect.Suspicion)
	for _, s := range suspect.Find(all, suspect.TestCases(runs)) {
		found[s.Key] = &s
	}
	for i := range histories {
		histories[i].suspicion = found[histories[i].key()]
	}
	return nil
}

// models returns the noise of all series up to the newest sessions, also for each collector
// where several have measured a series. This comparison rests on the noise before those
// sessions; the next one starts with the returned noise, which is also shown.
func models(histories []history) []store.SeriesNoise {
	var out []store.SeriesNoise
	for _, h := range histories {
		of := map[string][]noise.Session{"": h.series.Sessions}
		for _, s := range h.series.Sessions {
			of[s.Collector] = append(of[s.Collector], s)
		}
		if len(of) == 2 { // all together, and the only one
			of = map[string][]noise.Session{"": h.series.Sessions}
		}
		for _, collector := range slices.Sorted(maps.Keys(of)) {
			model := noise.Fit(of[collector], h.series.Lent...)
			model.Tau = h.tau(collector)
			out = append(out, store.SeriesNoise{TestCase: h.testCase, Metric: h.metric, Surrounding: h.Surrounding, Collector: collector, Model: model})
		}
	}
	return out
}

// lender groups the series that lend their spread to new ones: those of one metric of one
// benchmark.
type lender struct {
	benchmark string
	target    bench.Target
	metric    bench.Metric
}

func lenderOf(h history) lender { return lender{h.testCase.Benchmark, h.testCase.Target, h.metric} }

func lenders(histories []history) map[lender][]noise.Model {
	out := make(map[lender][]noise.Model)
	for _, h := range histories {
		out[lenderOf(h)] = append(out[lenderOf(h)], h.model)
	}
	return out
}

// noise returns the sessions as the noise model reads them.
func (h history) noise() []noise.Session {
	out := make([]noise.Session, len(h.sessions))
	for i, s := range h.sessions {
		marked := 0
		for _, d := range s.Disturbed {
			if d && h.metric.Disturbable() {
				marked++
			}
		}
		out[i] = noise.Session{At: s.At, Collector: s.Collector, Values: s.Values, Disturbed: bench.SessionDisturbed(marked, len(s.Values))}
	}
	return out
}

// tried lists the earlier suspicions of the series that were not confirmed.
func (h history) tried() []suspect.Tried {
	var out []suspect.Tried
	last := len(h.sessions) - 1
	for i, s := range h.sessions[:last] {
		if p, ok := h.past[s.Tag]; ok && !p.Changed {
			out = append(out, suspect.Tried{
				T: p.Score, Up: p.Up, Ago: last - i, Change: p.Change, P: p.P, Open: strings.HasPrefix(p.Reason, verdict.Budget),
			})
		}
	}
	return out
}

// row returns the row of a series in a comparison with a baseline, with its verdict unless
// it is to be measured again.
func (h history) row(mode bench.VerifyMode) store.ComparisonRow {
	row := store.ComparisonRow{
		TestCase: h.testCase, Metric: h.metric, Surrounding: h.Surrounding, Against: h.baseline.Tag,
		Exact: h.exact(), Delta: h.series.Delta, Bimodal: h.model.Has(noise.BimodalBySession),
	}
	if h.model.Logarithms {
		row.SigmaWithin, row.Tau = h.model.SigmaWithin, h.model.Tau
	}
	if row.Exact {
		if v, ok := h.exactly(row); ok {
			row.Suspected = v.Kind == verdict.Changed
			return withVerdict(row, v)
		}
	}
	row.Sees = h.series.Sees()
	s := h.suspicion
	if s == nil {
		if mode == bench.VerifyAll {
			return row
		}
		return withVerdict(row, notSuspected(row))
	}
	row.Suspected, row.Score, row.Suspicion, row.SuspectedChange = true, s.T, s.Reason, s.Change
	if s.Commits > 1 && s.Against < len(h.sessions)-1 {
		row.Against = h.sessions[s.Against].Tag
	}
	if s.Postponed && mode != bench.VerifyAll {
		return withVerdict(row, verdict.Verdict{
			P: 1, Reason: verdict.Budget + ": other suspects of this comparison are further from their history",
			Needs: "measuring it again with 'benchloom submit --adhoc' and '--vs " + row.Against + "'",
		})
	}
	return row
}

// notSuspected is the verdict on a row that is not measured again because nothing is
// suspicious about it.
func notSuspected(row store.ComparisonRow) verdict.Verdict {
	return verdict.Verdict{Kind: verdict.NoSuspicion, P: 1, Sees: row.Sees, Reason: "its history gives no cause to measure it again"}
}

// exactly judges values that do not vary, of which one is enough; ok is false if they do
// vary.
func (h history) exactly(row store.ComparisonRow) (verdict.Verdict, bool) {
	constant := func(values []float64) bool {
		return len(values) > 0 && len(slices.Compact(slices.Clone(values))) == 1
	}
	before, after := h.baseline.Values, h.own().Values
	if !constant(before) || !constant(after) {
		return verdict.Verdict{}, false
	}
	family, err := verdict.NewFamily(1)
	if err != nil {
		return verdict.Verdict{}, false
	}
	v := family.Judge(verdict.Evidence{Exact: true, Delta: row.Delta, Sessions: [][]verdict.Pair{{{A: before[0], B: after[0]}}}})
	v.Pairs, v.Sessions = 0, 0 // stored values, not measured in turns
	return v, true
}
