package sizeclass

import (
	"fmt"
	"math"
)

// choices describes the classes, with the probability of each.
func (d *decision) choices() []Choice {
	choices := make([]Choice, len(d.classes))
	for i, e := range d.classes {
		c := Choice{
			Class: e.class, Acceptable: e.acceptable, Timeout: e.timeout, Median: e.median,
			Succeeded: e.good, TooSmall: e.bad, Verdict: d.verdict(i),
		}
		if !math.IsInf(e.cost, 1) {
			c.Objective = e.cost
		}
		choices[i] = c
	}
	choices[d.settled].Probability = 1
	for _, p := range d.probes {
		choices[p.class].Probability += p.chance
		choices[d.settled].Probability -= p.chance
	}
	return choices
}

// verdict describes the state of a class in a few words.
func (d *decision) verdict(i int) string {
	e := d.classes[i]
	switch excluded := d.excluded(i); {
	case i == d.best:
		return "best known"
	case d.dominated(i):
		return "too small: a larger class ran out of memory"
	case e.memory > 0 && e.good == 0:
		return "too small: out of memory"
	case excluded != "":
		return "too small: " + excluded
	case e.good == 0 && e.bad > 0:
		return "too small"
	case d.best < 0:
		return "unknown"
	case e.good > 0 && e.cost >= d.classes[d.best].cost && e.centre > e.acceptable.Seconds():
		return "too slow: above the acceptable time"
	case e.good > 0:
		return "not as good as the best"
	case e.bound < d.classes[d.best].cost:
		return "could be better, not tried"
	}
	return "not tried: it cannot be better"
}

// inBytes formats a size in binary units.
func inBytes(n int64) string {
	const unit = 1024
	f, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; f >= unit && i < len(units)-1; i++ {
		f /= unit
	}
	return fmt.Sprintf("%.4g %s", f, units[i])
}
