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

// ticks returns round values within the range, in ascending order.
func (a axis) ticks() []float64 {
	options := scale.TickOptions{Max: maxTicks}
	if !a.log {
		major, _ := scale.Linear{Min: a.low, Max: a.high}.Ticks(options)
		return major
	}
	low, high := math.Pow(10, a.low), math.Pow(10, a.high)
	if logarithmic, err := scale.NewLog(low, high, 10); err == nil && a.high-a.low > 1 {
		if major, _ := logarithmic.Ticks(options); len(major) > 1 {
			return major
		}
	}
	// Less than two powers of ten: round values are closer together.
	major, _ := scale.Linear{Min: low, Max: high}.Ticks(options)
	return major
}

// prefixes of units, from the largest.
var prefixes = []struct {
	factor float64
	sign   string
}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}

// percent is the unit that takes no prefix.
const percent = "%"

// labels writes ticks in one common unit, with as many digits as tell them apart.
func labels(ticks []float64, unit string) []string {
	largest, closest := 0.0, math.Inf(1)
	for i, t := range ticks {
		largest = max(largest, math.Abs(t))
		if i > 0 {
			closest = min(closest, t-ticks[i-1])
		}
	}
	if math.IsInf(closest, 1) {
		closest = largest / 100
	}
	factor, sign := 1.0, ""
	if unit != percent && largest > 0 {
		for _, p := range prefixes {
			if factor, sign = p.factor, p.sign; largest >= p.factor {
				break
			}
		}
	}
	out := make([]string, len(ticks))
	suffix := sign + unit
	if suffix != "" {
		suffix = " " + suffix
	}
	for i, t := range ticks {
		digits := 0
		if step := closest / factor; step > 0 {
			// Ticks are multiples of 1 or 5 of a power of ten.
			digits = max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
		}
		if digits > 12 || math.Abs(t/factor) >= 1e6 {
			out[i] = strconv.FormatFloat(t/factor, 'g', 6, 64) + suffix
			continue
		}
		text := strconv.FormatFloat(t/factor, 'f', digits, 64)
		if t == 0 {
			text = "0"
		}
		out[i] = text + suffix
	}
	return out
}
