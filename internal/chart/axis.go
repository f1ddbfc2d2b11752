package chart

import (
	"math"
	"strconv"

	"github.com/aclements/go-moremath/scale"
)

// axis maps values to the height of the plot.
type axis struct {
	low, high float64
	log       bool
}

const (
	// noisePerRange is the least ratio of the range to the noise, so that noise alone never
	// fills a chart.
	noisePerRange = 3
	// margin is the part of the range that is added at both ends.
	margin = 0.05
	// flat is the relative half range around values that are all equal.
	flat = 0.05
	// maxTicks bounds the ticks of the y axis.
	maxTicks = 5
)

// newAxis returns the axis in which all values from low to high fit.
func newAxis(low, high, noise float64, log bool) axis {
	positive := low > 0 && !log
	if log {
		low, high = math.Log10(low), math.Log10(high)
		noise = 0 // a width of values, not of their logarithms
	}
	if noise = noise * noisePerRange; known(noise) && high-low < noise {
		middle := low + (high-low)/2
		low, high = middle-noise/2, middle+noise/2
	}
	if gap, size := high-low, max(math.Abs(low), math.Abs(high)); gap <= max(1e-12*size, 1/drawable) {
		half := flat * size
		if half <= 1/drawable {
			half = 1
		}
		low, high = low-half, high+half
	} else {
		low, high = low-margin*gap, high+margin*gap
	}
	if positive && low < 0 {
		low, high = 0, high-low // no room where no value can be
	}
	return axis{low: low, high: high, log: log}
}

// at returns the share of the height at which a value lies, from 0 at the bottom.
func (a axis) at(y float64) float64 {
	if a.log {
		y = math.Log10(y)
	}
	return scale.Linear{Min: a.low, Max: a.high}.Map(y)
}

// tick is a labelled value of the y axis.
type tick struct {
	y     float64
	label string
}

// ticks returns round values within the range, in ascending order. They are round in the
// unit of their labels, which is one for all unless powers are labelled.
func (a axis) ticks(unit string) []tick {
	options := scale.TickOptions{Max: maxTicks}
	low, high := a.low, a.high
	if a.log {
		low, high = math.Pow(10, low), math.Pow(10, high)
	}
	if a.log && a.high-a.low > 1 {
		base := 10
		if ofBytes(unit) {
			base = 2
		}
		if logarithmic, err := scale.NewLog(low, high, base); err == nil {
			if major, _ := logarithmic.Ticks(options); len(major) > 1 {
				return powers(major, unit)
			}
		}
	}
	// Round values are closer together, also on a logarithmic axis of less than a power.
	p := prefixOf(unit, max(math.Abs(low), math.Abs(high)))
	major, _ := scale.Linear{Min: low / p.factor, Max: high / p.factor}.Ticks(options)
	out := make([]tick, len(major))
	for i, words := range labels(major, p.sign+unit) {
		out[i] = tick{major[i] * p.factor, words}
	}
	return out
}

// prefix multiplies a unit.
type prefix struct {
	factor float64
	sign   string
}

// Prefixes of units, the largest first.
var (
	decimalPrefixes = []prefix{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
	binaryPrefixes  = []prefix{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}, {1, ""}}
	timePrefixes    = []prefix{{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}
	noPrefixes      = []prefix{{1, ""}}
)

// prefixesOf returns the prefixes with which values of a unit are read easily. Nobody reads
// thousands of seconds with a prefix, or thousandths of a count.
func prefixesOf(unit string) []prefix {
	switch {
	case unit == "%":
		return noPrefixes
	case unit == "s":
		return timePrefixes
	case ofBytes(unit):
		return binaryPrefixes
	}
	return decimalPrefixes
}

// ofBytes reports whether a unit is counted in powers of two.
func ofBytes(unit string) bool { return unit == "B" || unit == "B/s" }

// prefixOf returns the largest prefix of a unit that a size reaches, else the smallest.
func prefixOf(unit string, size float64) prefix {
	const rounding = 1e-9
	all := prefixesOf(unit)
	for _, p := range all {
		if size >= p.factor*(1-rounding) {
			return p
		}
	}
	return all[len(all)-1]
}

// significant is the number of digits of values that are not written by their distance.
const significant = 6

// powers labels values of a logarithmic axis, each with the prefix that suits it.
func powers(values []float64, unit string) []tick {
	out := make([]tick, len(values))
	for i, y := range values {
		p := prefixOf(unit, y)
		out[i] = tick{y, joined(strconv.FormatFloat(y/p.factor, 'g', significant, 64), p.sign+unit)}
	}
	return out
}

// labels writes values in a unit, with as many digits as tell them apart.
func labels(values []float64, unit string) []string {
	largest, closest := 0.0, math.Inf(1)
	for i, v := range values {
		largest = max(largest, math.Abs(v))
		if i > 0 {
			closest = min(closest, v-values[i-1])
		}
	}
	if math.IsInf(closest, 1) {
		closest = largest / 100
	}
	digits := 0
	if closest > 0 {
		// Values are multiples of 1 or 5 of a power of ten.
		digits = max(0, int(math.Ceil(-math.Log10(closest)-1e-9)))
	}
	out := make([]string, len(values))
	for i, v := range values {
		switch {
		case v == 0:
			out[i] = "0"
		case digits > 12 || math.Abs(v) >= 1e6:
			out[i] = strconv.FormatFloat(v, 'g', significant, 64)
		default:
			out[i] = strconv.FormatFloat(v, 'f', digits, 64)
		}
		out[i] = joined(out[i], unit)
	}
	return out
}

// joined writes a number with its unit, if it has one.
func joined(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}
