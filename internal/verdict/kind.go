package verdict

import "fmt"

// RuleVersion numbers the rule of this package. It is stored with each verdict and raised when the same evidence may
// get another one.
const RuleVersion = 1

// Kind is a conclusion about one series.
type Kind int

const (
	// Undecided means that neither a change nor its absence is shown; the verdict has the reason.
	Undecided Kind = iota
	// Changed means that there is a change, and that its interval reaches Delta; before the last look its estimate comes near.
	Changed
	// NoDifference means that every change which the data allow is irrelevant.
	NoDifference
	// NoSuspicion means that the series was not re-measured, since its history gave no cause. [Family.Judge] never
	// returns it.
	NoSuspicion
)

var kinds = [...]string{"undecided", "changed", "no difference", "no suspicion"}

// String returns the kind's name: "undecided", "changed", "no difference" or "no suspicion".
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kinds[k]
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kinds {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a verdict: use undecided, changed, no difference or no suspicion", text)
}

// Reasons for which a series stays undecided. [Verdict.Reason] begins with one of them.
const (
	// Noise means that the pairs differ too much among themselves.
	Noise = "noise"
	// Disturbance means that something else used the machine.
	Disturbance = "disturbance"
	// TooFewValues means that no result of so few usable pairs could decide.
	TooFewValues = "too few values"
	// Budget means that measuring ended early. The caller that ended it sets this reason.
	Budget = "budget"
)
