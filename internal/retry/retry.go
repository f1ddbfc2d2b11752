// Package retry decides what follows a run that ended without success.
//
// It is pure: the outcomes of a job's runs come in, a decision goes out. It must
// not know how runs are made or recorded.
package retry

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Policy bounds the tries of one job.
type Policy struct {
	// MaxJobFails is the number of runs that may end in the job's own failure; the
	// last of them fails the job (MAX_JOB_FAILS of the request life cycle).
	MaxJobFails int
}

// Losses never count as the job's failures. They are bounded for a job that takes each
// collector down that takes it.
const (
	// MaxLosses is the number of lost runs on the largest class after which a job is
	// given up.
	MaxLosses = 20
	// MaxLossesBelow is the number of lost runs on a smaller class after which the
	// job escalates: the collector may have been too small to report it. Restarted
	// machines lose fewer runs of one job in a row.
	MaxLossesBelow = 5
)

// Try is a run of a job that has ended.
type Try struct {
	Outcome bench.RunOutcome
	// Class is the size class it ran on.
	Class bench.SizeClass
}

// Standing is the present state of the job.
type Standing struct {
	// Class is the size class it waits for according to the record.
	Class bench.SizeClass
	// Next is the larger class to which a failure there leads; 0: none, for it is
	// the largest, or pinned.
	Next bench.SizeClass
}

// Decision is the next step of a job.
type Decision struct {
	Again bool
	// Reason of the next run.
	Reason bench.RunReason
	// EscalateTo is the larger class to which the job has to be moved first; 0: it
	// stays where it stands.
	EscalateTo bench.SizeClass
	// Pause comes before the next try.
	Pause time.Duration
	// AttemptsLeft is the number of attempts left on the class it goes to; always one
	// below the largest class, where a failure escalates. After an escalation the
	// caller knows whether that class is the largest.
	AttemptsLeft int
	// Why it is given up, when it is.
	Why string
}

// Decide answers the end of a run of the given kind. Tries are all runs of the job
// so far, that one included when it passed the fence.
//
// A job fails only where nothing larger is left: below, each failure leads on and
// is not counted. Asked again after the job was moved, it gives the same answer.
func Decide(p Policy, tries []Try, at Standing, kind bench.FailureKind) Decision {
	var failures, losses int
	for _, t := range tries {
		switch {
		case t.Outcome.Failed() && t.Class >= at.Class:
			failures++
		case t.Outcome == bench.RunLost && t.Class >= at.Class:
			losses++
		}
	}
	left := p.AttemptsLeft(failures, at)
	moved := len(tries) > 0 && tries[len(tries)-1].Class < at.Class
	switch {
	case kind == bench.FailPermanent:
		return Decision{Why: "no repetition can mend it"}
	case kind == bench.FailCancelled:
		return Decision{Why: "it was cancelled"}
	case kind == bench.FailInfrastructure && losses >= MaxLossesBelow && at.Next != 0:
		return Decision{Again: true, Reason: bench.Escalation, EscalateTo: at.Next, AttemptsLeft: 1}
	case losses >= MaxLosses:
		return Decision{Why: fmt.Sprintf("it was tried %d times without reaching its end", losses)}
	case kind.OfRun() && moved:
		return Decision{Again: true, Reason: bench.Escalation, AttemptsLeft: max(1, left)}
	case kind.OfRun() && at.Next != 0:
		return Decision{Again: true, Reason: bench.Escalation, EscalateTo: at.Next, AttemptsLeft: 1}
	case left <= 0:
		return Decision{Why: fmt.Sprintf("it failed %d times", failures)}
	}
	d := Decision{Again: true, Reason: bench.Retry, AttemptsLeft: left}
	switch {
	case len(tries) == 0: // it was given back: what follows is its first run still
		d.Reason = bench.Scheduled
	case moved:
		d.Reason = bench.Escalation
	}
	if kind == bench.FailInfrastructure {
		d.Pause = pause(losses)
	}
	return d
}

// AttemptsLeft returns the number of attempts a job has left after the given
// failures on its present class: always one below the largest class.
func (p Policy) AttemptsLeft(failures int, at Standing) int {
	if at.Next != 0 {
		return 1
	}
	return p.MaxJobFails - failures
}

// Unbegun is the pause after that many dispatches in a row that began no run: what keeps
// a collector from it will keep the next try from it, too. None after the first one, for
// another collector may be idle.
func Unbegun(dispatches int) time.Duration {
	return min(pause(dispatches), 30*time.Second)
}

// pause is none after a first loss, for another collector may be idle, then
// doubles from 1 s up to 1 min.
func pause(losses int) time.Duration {
	if losses <= 1 {
		return 0
	}
	return min(time.Second<<min(losses-2, 6), time.Minute)
}
