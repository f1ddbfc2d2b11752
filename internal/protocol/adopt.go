package protocol

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
)

// Adopted names a run that goes on at its collector although Temporal lost sight of it.
type Adopted struct {
	Run       bench.RunID
	Number    int
	Collector string
}

// Text says in words what goes on.
func (a Adopted) Text() string {
	return fmt.Sprintf("run %d (`%s`) goes on at collector `%s`; Temporal had lost sight of it", a.Number, a.Run, a.Collector)
}

// AwaitInput asks how an adopted run is doing.
type AwaitInput struct {
	Project string
	Run     bench.RunID
	// Doubted is set if the last answer was [RunDoubtful].
	Doubted bool
}

// RunSight is the state of an adopted run, as far as the record knows it.
type RunSight string

const (
	// RunEnded: the run has ended in the record.
	RunEnded RunSight = "ended"
	// RunGone: its collector is gone, or does something else.
	RunGone RunSight = "gone"
	// RunDoubtful: its collector seems to be gone; a second look decides.
	RunDoubtful RunSight = "doubtful"
	// RunGoesOn: the doubts were unfounded.
	RunGoesOn RunSight = "goes_on"
)

// AwaitResult tells how an adopted run is doing. While it goes on, AwaitRun fails and is
// repeated.
type AwaitResult struct {
	Sight   RunSight
	Outcome bench.RunOutcome // of a run that has ended
	Message string
}
