package noise

import (
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/stats/paired"
)

// Constants of the model.
const (
	window       = 60  // newest sessions that count
	unconfirmed  = 8   // newest sessions that may hold a change of which nothing is known yet
	enough       = 8   // sessions from which a series has a spread of its own
	exactAfter   = 20  // sessions without spread that make a metric exact
	assumedKappa = 0.6 // of series without history: low, so that too much is suspected rather than too little
)

// Session holds the values of one run of a series, in order of measuring.
type Session struct {
	At        time.Time
	Collector string
	Values    []float64
	Disturbed bool // more than a fifth of the iterations: left out of models
}

// Model describes the noise of a series. The sigmas are standard deviations of logarithms, or in the metric's unit if not
// all values are positive.
type Model struct {
	// Sessions and Values are the numbers of undisturbed sessions and of their values that the model rests on.
	Sessions int `json:"sessions"`
	Values   int `json:"values"`
	// Logarithms is set if all values are positive, and the model is one of logarithms.
	Logarithms bool `json:"logarithms"`
	// Level is the Hodges-Lehmann estimate of the sessions' levels, in the metric's unit; 0 without sessions.
	Level float64 `json:"level"`
	// SigmaSession is the standard deviation of the level of one session; SigmaWithin that of the values of a session. 0
	// means unknown, or without spread.
	SigmaSession float64 `json:"sigma_session"`
	SigmaWithin  float64 `json:"sigma_within"`
	// Kappa is the standard deviation between sessions, without what the values within them explain, in units of SigmaWithin.
	Kappa float64 `json:"kappa"`
	// Rho is the correlation of successive values within sessions, -1 to 1.
	Rho float64 `json:"rho"`
	// Tau is the standard deviation of the offset that one side has in a session in turns, in units of SigmaWithin; 0 means
	// unknown. Fit leaves it to the caller to set it from [Tau].
	Tau float64 `json:"tau"`
	// Lenders is the number of series from which SigmaSession is borrowed, 0 if it is the series' own.
	Lenders int `json:"lenders,omitempty"`
	// Assumed is set if SigmaSession is not measured: there are too few sessions and no series to borrow from.
	Assumed bool `json:"assumed,omitempty"`
	// Labels name noise that is not normal.
	Labels []Label `json:"labels,omitempty"`
}

// Has reports whether the series has a label.
func (m Model) Has(label Label) bool { return slices.Contains(m.Labels, label) }

// Sees returns the relative change of one session at which detection with a threshold, in standard deviations, would suspect
// a change; 0 for exact series, where any change is seen, and for those of which nothing is known.
func (m Model) Sees(threshold float64) float64 {
	n := float64(max(m.Sessions, 1))
	distance := threshold * m.SigmaSession * math.Sqrt(1+1/n)
	switch {
	case m.Logarithms:
		return math.Expm1(min(distance, 700))
	case m.Level == 0:
		return 0
	default:
		return distance / math.Abs(m.Level)
	}
}

// Fit returns the model of a series' noise. Until the series has eight undisturbed sessions it borrows SigmaSession from the
// lent models, those of series of the same benchmark and metric: their median. Without any, SigmaSession is assumed from the
// spread of the values; three to seven sessions can only raise it.
//
// The offsets of several collectors are taken out first, see [Offsets].
func Fit(sessions []Session, lent ...Model) Model {
	sessions = Usable(sessions)
	slices.SortStableFunc(sessions, func(x, y Session) int { return x.At.Compare(y.At) })
	sessions = sessions[max(0, len(sessions)-window):]
	m := Model{Sessions: len(sessions), Logarithms: Positive(sessions)}
	groups := make([][]float64, len(sessions))
	for i, s := range sessions {
		groups[i] = scaled(s.Values, m.Logarithms)
		m.Values += len(s.Values)
	}
	levels := Levels(sessions, m.Logarithms)
	offsets := Offsets(sessions, levels)
	for i, s := range sessions {
		levels[i] -= offsets[s.Collector]
	}
	if len(levels) > 0 {
		m.Level = unscaled(paired.Estimate(levels), m.Logarithms)
	}
	m.SigmaWithin = Within(groups)
	m.Rho = correlation(groups)
	m.SigmaSession = SessionSpread(settled(levels))
	if len(sessions) < enough {
		m.borrow(lent, groups)
	}
	if m.SigmaWithin > 0 {
		explained := m.SigmaWithin * explainedShare(groups)
		m.Kappa = math.Sqrt(max(0, m.SigmaSession*m.SigmaSession-explained*explained)) / m.SigmaWithin
	}
	m.Labels = labels(groups, levels)
	return m
}

// borrow fills in what too few sessions cannot tell.
func (m *Model) borrow(lent []Model, groups [][]float64) {
	var between, within []float64
	for _, other := range lent {
		if other.Sessions >= enough && other.Logarithms == m.Logarithms && other.Lenders == 0 {
			between, within = append(between, other.SigmaSession), append(within, other.SigmaWithin)
		}
	}
	if len(between) > 0 {
		m.Lenders, m.SigmaSession = len(between), median(between)
		if m.SigmaWithin == 0 {
			m.SigmaWithin = median(within)
		}
		return
	}
	m.Assumed = true
	share := explainedShare(groups)
	assumed := m.SigmaWithin * math.Sqrt(assumedKappa*assumedKappa+share*share)
	if len(groups) < 3 {
		m.SigmaSession = assumed
	} else {
		m.SigmaSession = max(m.SigmaSession, assumed)
	}
}

// explainedShare returns the standard deviation of a session's level that the spread within explains, in units of that
// spread. The variance of the Hodges-Lehmann estimate of n normal values is pi/3 of that of a mean's 1/n.
func explainedShare(groups [][]float64) float64 {
	if len(groups) == 0 {
		return 0
	}
	sum := 0.0
	for _, group := range groups {
		sum += math.Pi / 3 / float64(len(group))
	}
	return math.Sqrt(min(1, sum/float64(len(groups))))
}

// SessionSpread returns the standard deviation of one session's level, from levels in order of time: that of successive
// differences, which a slow drift hardly touches, or that of the levels, whichever is larger. Both draw far values in, see
// [Spread].
func SessionSpread(levels []float64) float64 {
	differences := make([]float64, 0, len(levels))
	for i := 1; i < len(levels); i++ {
		differences = append(differences, levels[i]-levels[i-1])
	}
	return max(Spread(differences)/math.Sqrt2, Spread(levels))
}

// settled leaves out the newest levels if enough remain: they may hold a change that is not confirmed yet.
func settled(levels []float64) []float64 {
	if len(levels) >= enough+unconfirmed {
		return levels[:len(levels)-unconfirmed]
	}
	return levels
}

// Levels returns each session's Hodges-Lehmann estimate, of logarithms if so asked. Every session must have values, and
// positive ones for logarithms.
func Levels(sessions []Session, logarithms bool) []float64 {
	levels := make([]float64, len(sessions))
	for i, s := range sessions {
		levels[i] = paired.Estimate(scaled(s.Values, logarithms))
	}
	return levels
}

// Offsets returns how far the median level of each collector is from that of all sessions. Collectors with fewer than four
// of the sessions have no offset, nor has a single collector.
func Offsets(sessions []Session, levels []float64) map[string]float64 {
	byCollector := map[string][]float64{}
	for i, s := range sessions {
		byCollector[s.Collector] = append(byCollector[s.Collector], levels[i])
	}
	if len(byCollector) < 2 {
		return nil
	}
	const fewest = 4
	center, offsets := median(levels), map[string]float64{}
	for collector, own := range byCollector {
		if len(own) >= fewest {
			offsets[collector] = median(own) - center
		}
	}
	return offsets
}

// Usable returns the undisturbed sessions with values, without values that are not finite.
func Usable(sessions []Session) []Session {
	var kept []Session
	for _, s := range sessions {
		s.Values = slices.DeleteFunc(slices.Clone(s.Values), func(v float64) bool { return math.IsNaN(v) || math.Abs(v) > largest })
		if !s.Disturbed && len(s.Values) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// largest keeps squares of values finite. No measured value comes near it.
const largest = 1e150

// Positive reports whether all values are positive, so that they have logarithms.
func Positive(sessions []Session) bool {
	return !slices.ContainsFunc(sessions, func(s Session) bool { return slices.Min(s.Values) <= 0 })
}

func scaled(values []float64, logarithms bool) []float64 {
	if !logarithms {
		return values
	}
	scaled := make([]float64, len(values))
	for i, v := range values {
		scaled[i] = math.Log(v)
	}
	return scaled
}

func unscaled(level float64, logarithms bool) float64 {
	if logarithms {
		return math.Exp(level)
	}
	return level
}

// correlation returns the correlation of successive values within groups of at least four, pooled, and corrected for the
// groups' estimated means: for n independent values it would be -1/n.
//
// Source of the bias: M. G. Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41 (1954).
func correlation(groups [][]float64) float64 {
	var products, total, lengths float64
	count := 0.0
	for _, group := range groups {
		if len(group) < 4 {
			continue
		}
		mean := average(group)
		for i, v := range group {
			total += (v - mean) * (v - mean)
			if i > 0 {
				products += (v - mean) * (group[i-1] - mean)
			}
		}
		lengths += float64(len(group))
		count++
	}
	if total == 0 {
		return 0
	}
	n := lengths / count
	rho := products/total + 1/n
	return min(max(rho/(1-3/n), -1), 1)
}
