package bench

import "strings"

// MaxDisturbed is the share of a session's collections above which the whole session
// is disturbed: it is kept and shown, but enters no model and supports no verdict.
const MaxDisturbed = 0.2

// SessionDisturbed reports whether a session, a run's collections of one test case of
// one artifact, is disturbed as a whole.
func SessionDisturbed(disturbed, collections int) bool {
	return float64(disturbed) > MaxDisturbed*float64(collections)
}

// independentOfLoad lists the metrics, beside sizes of files, that have the same value whatever else uses the machine.
var independentOfLoad = map[Metric]bool{
	"B/op":      true, // what Go benchmarks allocate is decided by the program
	"allocs/op": true,
}

// Disturbable reports whether other load changes the metric, so that the mark of a disturbed iteration concerns it.
//
// Other load changes neither file sizes nor the number and size of a Go benchmark's allocations. It changes every time and
// rate, counts of what happens while threads wait (instructions too: they spin), and peak memory, since a garbage collector
// that gets less CPU time collects later. An unknown unit counts as changed: the mark then costs time, while its absence might
// cost a wrong verdict.
func (m Metric) Disturbable() bool {
	_, unit := m.Split()
	return !strings.HasPrefix(string(unit), SizePrefix) && !independentOfLoad[unit]
}
