// Package retry decides the next step after a run that failed.
//
// It is pure: it maps the outcomes of a job's runs to a decision. It must not
// know how runs are executed or recorded.
package retry

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Policy limits the attempts at one job.
type Policy struct {
	// MaxJobFails is the number of runs ending in the job's own failure after
	// which the job fails (MAX_JOB_FAILS of the request life cycle).
	MaxJobFails int
}

// Losses never count as failures of the job. They are limited because a job may
// crash every collector that runs it.
const (
	// MaxLosses is the number of lost runs on the largest class after which a
	// job fails.
	MaxLosses = 20
	// MaxLossesBelow is the number of lost runs on a smaller class after which
	// the job escalates: the collector may have been too small to report the
	// reason. Restarted machines lose fewer runs of one job in a row.
	MaxLossesBelow = 5
)

// Try is an ended run of a job.
type Try struct {
	Outcome bench.RunOutcome
	// Class is the size class it ran on.
	Class bench.SizeClass
	// Asked reports that a person asked for it: it is no automatic attempt.
	Asked bool
}

// Tries returns the tries that the runs of a job are.
func Tries(runs []bench.Run) []Try {
	out := make([]Try, len(runs))
	for i, r := range runs {
		out[i] = Try{Outcome: r.Outcome, Class: r.SizeClass, Asked: r.Reason == bench.Rerun}
	}
	return out
}

// Standing is the present state of the job.
type Standing struct {
	// Class is the recorded size class that it waits for.
	Class bench.SizeClass
	// Next is the larger class to which a failure escalates; 0 if the class is
	// the largest or pinned.
	Next bench.SizeClass
	// Asked reports that a person asked for a run which has not begun: whatever was before,
	// it is due.
	Asked bool
}

// Decision is the next step of a job.
type Decision struct {
	Again bool
	// Reason of the next run.
	Reason bench.RunReason
	// EscalateTo is the larger class to which the job must be moved first; 0
	// means that it stays.
	EscalateTo bench.SizeClass
	// Pause is the time to wait before the next run.
	Pause time.Duration
	// AttemptsLeft is the number of attempts left on the next run's class;
	// always one below the largest class, where a failure escalates. After an
	// escalation the caller knows whether that class is the largest.
	AttemptsLeft int
	// Why is the reason for giving up, if any.
	Why string
}

// Decide returns the next step after a run that ended with the given kind of
// failure. Tries are all runs of the job so far, including that one if it
// passed the fence.
//
// A job fails only on the largest class: below, each failure escalates and is
// not counted. What a person asked for uses up no attempt and gives none back: it is tried
// even if none is left, and then decides. Called again after the job was moved, it returns the same
// decision.
func Decide(p Policy, tries []Try, at Standing, kind bench.FailureKind) Decision {
	failures, losses := count(tries, at)
	left := p.AttemptsLeft(failures, at)
	moved := len(tries) > 0 && tries[len(tries)-1].Class < at.Class
	switch {
	case kind == bench.FailPermanent:
		return Decision{Why: "no repetition can mend it"}
	case kind == bench.FailCancelled:
		return Decision{Why: "it was cancelled"}
	case at.Asked:
		return Decision{Again: true, Reason: bench.Scheduled, AttemptsLeft: p.Attempts(tries, at)}
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
	case len(tries) == 0: // it was returned: the next run is still its first
		d.Reason = bench.Scheduled
	case moved:
		d.Reason = bench.Escalation
	}
	if kind == bench.FailInfrastructure {
		d.Pause = pause(losses)
	}
	return d
}

// count returns how many automatic attempts on the present class have failed, and how many
// were lost.
func count(tries []Try, at Standing) (failures, losses int) {
	for _, t := range tries {
		switch {
		case t.Asked:
		case t.Outcome.Failed() && t.Class >= at.Class:
			failures++
		case t.Outcome == bench.RunLost && t.Class >= at.Class:
			losses++
		}
	}
	return failures, losses
}

// Attempts returns the number of attempts of a job that has not begun since it was asked
// for: for one that was asked for again, that run and the automatic attempts that are left.
func (p Policy) Attempts(tries []Try, at Standing) int {
	failures, _ := count(tries, at)
	left := p.AttemptsLeft(failures, at)
	if len(tries) == 0 || at.Next != 0 {
		return left
	}
	return max(0, left) + 1
}

// AttemptsLeft returns the number of attempts left after the given failures on
// the present class: always one below the largest class.
func (p Policy) AttemptsLeft(failures int, at Standing) int {
	if at.Next != 0 {
		return 1
	}
	return p.MaxJobFails - failures
}

// Unbegun returns the pause after that many consecutive dispatches that started
// no run: the cause is likely to affect the next attempt, too. There is none
// after the first, because another collector may be idle.
func Unbegun(dispatches int) time.Duration {
	return min(pause(dispatches), 30*time.Second)
}

// pause returns 0 after a first loss, because another collector may be idle,
// then doubles from 1 s up to 1 min.
func pause(losses int) time.Duration {
	if losses <= 1 {
		return 0
	}
	return min(time.Second<<min(losses-2, 6), time.Minute)
}
