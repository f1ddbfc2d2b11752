package verdict

import (
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/stats/paired"
)

// Constants of the rule; see the decision record for their reasons.
const (
	alpha          = 0.01 // the probability that any series of a family without changes is called changed
	equivalence    = 0.05 // the same for no difference at a change of ±Delta, for one series and all looks
	defaultTau     = 0.3  // the spread of a side's offset in a session, in units of that within sessions
	largestTau     = 0.5  // above it, a session counts as one pair
	offsets        = 3    // standard deviations of the sides' offsets that a change must exceed
	nearlyDelta    = 0.75 // of Delta, which an estimate must reach before the last look
	contradiction  = 0.1  // p value from which a session whose pairs go the other way forbids a change
	agreeing       = 4    // standard deviations by which sessions of a series without history may differ
	youngSessions  = 4    // sessions in which a series without history must show a change
	grownSessions  = 20   // sessions from which a history shows how sessions differ
	disturbedShare = 0.2  // of a session's pairs: above it, none of them supports no difference
)

// Alpha is the probability that any series of a family without changes is called changed, in all looks.
const Alpha = alpha

// looks are the pairs measured in total after each look.
var looks = []int{6, 14, 22, 34, 46}

// Family is the set of all series, that is deciding metrics of test cases, that are re-measured together. It is fixed before
// measuring.
type Family struct {
	Size  int     `json:"size"`  // number of series
	Alpha float64 `json:"alpha"` // probability that any of them is called changed although none is
	Looks []int   `json:"looks"` // pairs measured in total after each look
}

// TooLargeError reports a family that is too large: the looks do not give enough pairs for its level.
type TooLargeError struct {
	Size, Limit int
}

// Error says how many series can be decided together.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%d series are too many to be decided together: at most %d can be; select fewer benchmarks or metrics, or verify suspects only",
		e.Size, e.Limit)
}

// NewFamily returns the family of the given number of series. The error is a [*TooLargeError] above 4,194 series, the most
// that 22 pairs can confirm.
func NewFamily(size int) (Family, error) {
	if size < 1 {
		return Family{}, fmt.Errorf("a family of %d series: at least one is needed", size)
	}
	f := Family{Size: size, Alpha: alpha, Looks: slices.Clone(looks)}
	if f.first() > 2 {
		return Family{}, &TooLargeError{Size: size, Limit: largestFamily()}
	}
	return f, nil
}

// largestFamily returns the number of series up to which the third look can confirm.
func largestFamily() int {
	return int(alpha / float64(len(looks)) / paired.Smallest(looks[2]))
}

// first returns the index of the first look that can confirm, len(f.Looks) if none can: the first whose smallest p value
// is below the level that each look would have if all could. Earlier looks cannot reach the level and spend none of it.
func (f Family) first() int {
	level := f.Alpha / float64(max(f.Size, 1)) / float64(max(len(f.Looks), 1))
	for i, pairs := range f.Looks {
		if paired.Smallest(pairs) < level {
			return i
		}
	}
	return len(f.Looks)
}

// Confirms returns the least number of pairs that can be called changed: 14 for up to 16 series, else 22.
func (f Family) Confirms() int {
	if first := f.first(); first < len(f.Looks) {
		return f.Looks[first]
	}
	return 0
}

// Level returns the level of each look's test: that of the family, divided by its size and by the number of looks that can
// confirm.
func (f Family) Level() float64 { return f.levelOf(len(f.Looks)) }

// levelOf returns the level for evidence of a number of sessions: sessions beyond the looks are tests as well.
func (f Family) levelOf(sessions int) float64 {
	confirming := len(f.Looks) - f.first() + max(0, sessions-len(f.Looks))
	return f.Alpha / float64(max(f.Size, 1)) / float64(max(confirming, 1))
}

// NextLook returns how many pairs the next look adds to those measured so far, 6, 8, 8, 12 and 12. ok is false after the
// last one. Lost pairs are not made up for by a look of fewer than half of the first one's.
func (f Family) NextLook(pairs int) (more int, ok bool) {
	for _, total := range f.Looks {
		if more = total - pairs; 2*more >= f.Looks[0] {
			return more, true
		}
	}
	return 0, false
}

// NewFixedFamily returns the family of series that are measured once, with a number of pairs that was chosen beforehand.
func NewFixedFamily(size, pairs int) (Family, error) {
	if size < 1 || pairs < 1 {
		return Family{}, fmt.Errorf("a family of %d series with %d pairs: at least one of each is needed", size, pairs)
	}
	return Family{Size: size, Alpha: alpha, Looks: []int{pairs}}, nil
}
