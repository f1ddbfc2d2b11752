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
	// MaxJobFails is how many runs may end in the job's own failure; the last
	// of them fails the job (MAX_JOB_FAILS of the request life cycle).
	MaxJobFails int
}

// MaxLosses is how many runs of a job may be lost to infrastructure before it
// is given up. Losses never count as the job's failures; this bound only ends
// a job that kills each collector that takes it.
const MaxLosses = 20

// Decision is what follows.
type Decision struct {
	Again bool
	// Pause comes before the next try.
	Pause time.Duration
	// AttemptsLeft is how many failures of its own the job still has.
	AttemptsLeft int
	// Why it is given up, when it is.
	Why string
}

// Decide answers the end of a run of the given kind. Outcomes are those of all
// runs of the job so far, that one included when it passed the fence.
func Decide(p Policy, outcomes []bench.RunOutcome, kind bench.FailureKind) Decision {
	var failures, losses int
	for _, o := range outcomes {
		switch o {
		case bench.RunFailure, bench.RunTooSmall:
			failures++
		case bench.RunLost:
			losses++
		}
	}
	left := p.MaxJobFails - failures
	switch {
	case kind == bench.FailPermanent:
		return Decision{Why: "no repetition can mend it"}
	case kind == bench.FailCancelled:
		return Decision{Why: "it was cancelled"}
	case left <= 0:
		return Decision{Why: fmt.Sprintf("it failed %d times", failures)}
	case losses >= MaxLosses:
		return Decision{Why: fmt.Sprintf("it was tried %d times without reaching its end", losses)}
	}
	d := Decision{Again: true, AttemptsLeft: left}
	if kind == bench.FailInfrastructure {
		d.Pause = pause(losses)
	}
	return d
}

// pause is none after a first loss, for another collector may be idle, then
// doubles from 1 s up to 1 min.
func pause(losses int) time.Duration {
	if losses <= 1 {
		return 0
	}
	return min(time.Second<<min(losses-2, 6), time.Minute)
}
