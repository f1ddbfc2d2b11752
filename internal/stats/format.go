package stats

import (
	"fmt"
	"math"
	"strconv"
)

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// formatP writes a p value with as many digits as a person needs.
func formatP(p float64) string {
	switch {
	case p < 0.0001:
		return strconv.FormatFloat(p, 'e', 0, 64)
	case p < 0.01:
		return strconv.FormatFloat(p, 'f', 4, 64)
	default:
		return strconv.FormatFloat(p, 'f', 2, 64)
	}
}

// formatChange writes a relative change in percent with its sign; "0.00 %" has none.
func formatChange(c Change) string {
	if !c.Defined() {
		return "undefined"
	}
	return SignedPercent(c.Value)
}

// SignedPercent writes a relative change in percent with its sign: "+1.20 %"; "0.00 %" has none.
func SignedPercent(change float64) string {
	text := Percent(math.Abs(change))
	switch {
	case change == 0:
		return text
	case change > 0:
		return "+" + text
	default:
		return "-" + text
	}
}

// Percent writes a relative size in percent: two digits after the point, more for a size that would vanish.
func Percent(share float64) string {
	percent := 100 * share
	digits := 2
	if percent > 0 && percent < 0.005 {
		return strconv.FormatFloat(percent, 'g', 1, 64) + " %"
	}
	if percent >= 1000 {
		digits = 0
	}
	return strconv.FormatFloat(percent, 'f', digits, 64) + " %"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
