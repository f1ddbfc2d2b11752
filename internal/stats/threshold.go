package stats

import (
	"fmt"
	"math"
	"slices"
)

// DefaultThreshold is the relative change below which nothing counts in the absence of a history: 0.2 %.
const DefaultThreshold = 0.002

// HistoryValues is the number of earlier values from which a threshold is derived.
const HistoryValues = 30

// Threshold is the smallest relative change that counts as more than noise (0.002 means 0.2 %).
type Threshold struct {
	Value float64 `json:"value"`
	// FromHistory is set when the value was derived from earlier results, not taken from the default.
	FromHistory bool `json:"from_history"`
	// Source describes the origin of the value.
	Source string `json:"source"`
}

// HistoryThreshold derives the threshold of a series from its values before the baseline, newest first: with the 29
// relative changes between neighbours of the newest 30 values, in order, Q1 the mean of the 7th and 8th and Q3 the
// mean of the 22nd and 23rd, it is Q3 + 3 (Q3 - Q1). With fewer values, or among them one that is not finite or
// not positive, so that a relative change has no meaning, it is the given default.
//
// Source: the significance threshold of rust-lang/rustc-perf.
func HistoryThreshold(newestFirst []float64, byDefault float64) Threshold {
	fallback := func(why string) Threshold {
		return Threshold{Value: byDefault, Source: "default: " + why}
	}
	if len(newestFirst) < HistoryValues {
		return fallback(fmt.Sprintf("%d earlier values, %d are needed", len(newestFirst), HistoryValues))
	}
	changes := make([]float64, 0, HistoryValues-1)
	for i, x := range newestFirst[:HistoryValues] {
		if !(x > 0) || math.IsInf(x, 0) {
			return fallback("an earlier value is not positive")
		}
		if i > 0 {
			newer := newestFirst[i-1]
			changes = append(changes, math.Abs(newer-x)/newer)
		}
	}
	slices.Sort(changes)
	q1 := (changes[6] + changes[7]) / 2
	q3 := (changes[21] + changes[22]) / 2
	return Threshold{
		Value:       q3 + 3*(q3-q1),
		FromHistory: true,
		Source:      fmt.Sprintf("changes among the last %d values", HistoryValues),
	}
}

// Magnitude is the size of a change in words.
type Magnitude int

// The magnitudes, in order. MagnitudeUndefined is the magnitude of a change from zero or a negative value.
const (
	MagnitudeUndefined Magnitude = iota
	VerySmall
	Small
	Medium
	Large
	VeryLarge
)

// String returns the magnitude's name.
func (m Magnitude) String() string {
	names := [...]string{"undefined", "very small", "small", "medium", "large", "very large"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("Magnitude(%d)", int(m))
	}
	return names[m]
}

// MarshalText writes the magnitude as its name.
func (m Magnitude) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a magnitude's name.
func (m *Magnitude) UnmarshalText(text []byte) (err error) {
	*m, err = named(text, MagnitudeUndefined, VeryLarge)
	return err
}

// MagnitudeOf combines how far a relative change exceeds its threshold with its size in percent, which counts half
// unless the metric is precise. Changes below 0.01 % are always very small.
//
// Source: the magnitude of rust-lang/rustc-perf.
func MagnitudeOf(change, threshold float64, precise bool) Magnitude {
	size := math.Abs(change)
	if size < 0.0001 {
		return VerySmall
	}
	percent := 100 * size
	if !precise {
		percent /= 2
	}
	byFactor := bucket(factorOf(change, threshold), [4]float64{1.5, 3, 6, 12})
	byPercent := bucket(percent, [4]float64{0.2, 1, 2, 5})
	return Magnitude((byFactor + byPercent) / 2)
}

// factorOf returns a change as a multiple of its threshold; 0 if that is not finite.
func factorOf(change, threshold float64) float64 {
	factor := math.Abs(change) / threshold
	if math.IsNaN(factor) || math.IsInf(factor, 0) {
		return 0
	}
	return factor
}

// bucket returns 1 for a value below the first limit, up to 5 for one not below the last.
func bucket(value float64, limits [4]float64) int {
	for i, limit := range limits {
		if value < limit {
			return i + 1
		}
	}
	return len(limits) + 1
}
