package noise

import (
	"math"
	"slices"
)

// Label names noise that is not normal. A label is shown, and may change how a series is measured again; it never hides a
// change.
type Label string

const (
	// Exact series had no spread in 20 sessions.
	Exact Label = "exact"
	// Skewed series have values far from the others mostly on one side.
	Skewed Label = "skewed"
	// Outliers are single values far from the others on both sides.
	Outliers Label = "outliers"
	// BimodalWithin series have values around two levels in one session.
	BimodalWithin Label = "bimodal within"
	// BimodalBySession series have one of two levels in each session.
	BimodalBySession Label = "bimodal by session"
	// Wandering series drift or jump between levels, so that sessions resemble their neighbours.
	Wandering Label = "wandering"
)

// Bounds of the labels. Those without a source are chosen such that normal noise gets a label in less than one of a hundred
// series; see the tests.
const (
	unlikely     = 3    // standard deviations of a statistic of normal noise
	fewestValues = 30   // values for a label of what is within sessions
	fewestLevels = 16   // sessions for a label of what is between them
	flat         = -1.3 // excess kurtosis below that of the uniform distribution, -1.2, as that of two modes
	modesApart   = 5.0  // distance of two modes of levels, in units of the spread within them; 2.7 by chance
	smallerMode  = 0.05 // least share of the smaller mode
)

// labels returns the labels of values within sessions and of the sessions' levels, in order of time.
func labels(groups [][]float64, levels []float64) []Label {
	if withoutSpread(groups) {
		return []Label{Exact}
	}
	found := withinLabels(groups)
	if len(levels) < fewestLevels {
		return found
	}
	bimodal := bimodalLevels(levels)
	if bimodal {
		found = append(found, BimodalBySession)
	}
	if !bimodal && wanders(levels) {
		found = append(found, Wandering)
	}
	return found
}

// WithoutSpread reports whether the model of sessions, in order of time, would have the label [Exact].
func WithoutSpread(sessions []Session) bool {
	var groups [][]float64
	for _, s := range slices.Backward(sessions) {
		for _, usable := range Usable([]Session{s}) {
			groups = append(groups, usable.Values)
		}
		if len(groups) == exactAfter || len(groups) > 0 && slices.Min(groups[len(groups)-1]) != slices.Max(groups[0]) {
			break
		}
	}
	return withoutSpread(groups)
}

// withoutSpread reports whether all values of the newest sessions are equal.
func withoutSpread(groups [][]float64) bool {
	if len(groups) < exactAfter {
		return false
	}
	newest := groups[len(groups)-exactAfter:]
	return !slices.ContainsFunc(newest, func(group []float64) bool {
		return slices.Min(group) != newest[0][0] || slices.Max(group) != newest[0][0]
	})
}

// withinLabels judges the distances of values from their session's mean, without the lowest and the highest, by their
// skewness and excess kurtosis.
//
// Source of the standard deviations of both under normal noise: R. A. Fisher, The moments of the distribution for normal
// samples of measures of departure from normality, Proc. R. Soc. A 130 (1930).
func withinLabels(groups [][]float64) []Label {
	var residuals []float64
	remaining := 0.0 // of the excess kurtosis, since each residual mixes all values of its session
	for _, group := range groups {
		if len(group) < 3 {
			continue
		}
		mean, n := average(group), float64(len(group))
		share := 1 - 1/n
		remaining += n * (math.Pow(share, 4) + (n-1)/math.Pow(n, 4)) / (share * share)
		for _, v := range group {
			residuals = append(residuals, (v-mean)*math.Sqrt(n/(n-1)))
		}
	}
	if len(residuals) < fewestValues {
		return nil
	}
	remaining /= float64(len(residuals))
	slices.Sort(residuals)
	residuals = residuals[1 : len(residuals)-1]
	skewness, kurtosis, ok := shape(residuals)
	if !ok {
		return nil
	}
	n := float64(len(residuals))
	var found []Label
	if math.Abs(skewness) > unlikely*math.Sqrt(6/n) {
		found = append(found, Skewed)
	}
	switch limit := unlikely * math.Sqrt(24/n); {
	case kurtosis > limit && len(found) == 0:
		found = append(found, Outliers)
	case kurtosis < -limit && kurtosis < flat*remaining:
		found = append(found, BimodalWithin)
	}
	return found
}

// shape returns the skewness and the excess kurtosis of values; ok is false if they have no spread.
func shape(values []float64) (skewness, kurtosis float64, ok bool) {
	mean, n := average(values), float64(len(values))
	var second, third, fourth float64
	for _, v := range values {
		d := v - mean
		second += d * d / n
		third += d * d * d / n
		fourth += d * d * d * d / n
	}
	if !(second > 0) || fourth == 0 {
		return 0, 0, false
	}
	return third / math.Pow(second, 1.5), fourth/(second*second) - 3, true
}

// halves splits values in two where that leaves least spread within the parts. It returns the distance of the parts' means
// in units of the standard deviation within them, infinite if they have none, and the border.
func halves(values []float64) (apart, border float64) {
	ascending := slices.Sorted(slices.Values(values))
	n, mean := float64(len(ascending)), average(ascending)
	between, at, below := 0.0, 0, 0.0 // below is the sum of the lower part's distances from the mean
	for i := 1; i < len(ascending); i++ {
		below += mean - ascending[i-1]
		if ascending[i] == ascending[i-1] {
			continue
		}
		lower := float64(i)
		if explained := below * below * n / (lower * (n - lower)); explained > between {
			between, at = explained, i
		}
	}
	if at == 0 {
		return 0, ascending[0] // all values are equal
	}
	distance := average(ascending[at:]) - average(ascending[:at])
	return distance / math.Sqrt(max(0, squares(ascending)-between)/n), ascending[at]
}

// bimodalLevels reports whether levels belong to two modes with nothing between them, and change between them again and again:
// a single step is a change, and no mode.
func bimodalLevels(levels []float64) bool {
	apart, border := halves(levels)
	if !(apart > modesApart) {
		return false
	}
	upper, switches := 0, 0
	for i, x := range levels {
		if x >= border {
			upper++
		}
		if i > 0 && (x >= border) != (levels[i-1] >= border) {
			switches++
		}
	}
	smaller := min(upper, len(levels)-upper)
	return switches >= 3 && float64(smaller) >= smallerMode*float64(len(levels))
}

// wanders reports whether successive levels are more alike than independent ones would be.
//
// Source: J. von Neumann, Distribution of the ratio of the mean square successive difference to the variance, Ann. Math.
// Statist. 12 (1941).
func wanders(levels []float64) bool {
	levels = withoutTails(levels)
	spread, successive := squares(levels), 0.0
	for i := 1; i < len(levels); i++ {
		successive += (levels[i] - levels[i-1]) * (levels[i] - levels[i-1])
	}
	if spread == 0 {
		return false
	}
	n := float64(len(levels))
	return (1-successive/spread/2)*math.Sqrt((n*n-1)/(n-2)) > unlikely
}
