package bench

// MaxDisturbed is the share of a session's collections above which the whole session
// is disturbed: it is kept and shown, but enters no model and supports no verdict.
const MaxDisturbed = 0.2

// SessionDisturbed reports whether a session, a run's collections of one test case of
// one artifact, is disturbed as a whole.
func SessionDisturbed(disturbed, collections int) bool {
	return float64(disturbed) > MaxDisturbed*float64(collections)
}
