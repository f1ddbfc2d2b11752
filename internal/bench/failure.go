package bench

// FailureKind says who has to answer a failure; see the table "What can go
// wrong, and who answers" in docs/architecture.md.
type FailureKind string

const (
	// Infrastructure: collector died, worker shut down, API or database away.
	// Tried again on the same size class, never the job's failure.
	FailInfrastructure FailureKind = "infrastructure"
	// TooSmall: the machine was too small, in that the disk limit was reached, or in
	// a way that is not known.
	FailTooSmall FailureKind = "too_small"
	// FailTimeout and FailOutOfMemory speak about size as well.
	FailTimeout     FailureKind = "timeout"
	FailOutOfMemory FailureKind = "out_of_memory"
	// FailJob: a benchmark exits with an error. Counted.
	FailJob FailureKind = "job"
	// FailPermanent: artifact not found, invalid definition. Final at once.
	FailPermanent FailureKind = "permanent"
	FailCancelled FailureKind = "cancelled"
	// FailNotTaken: the collector gave the job back, for its machine had taken another
	// one or takes none any more. Tried again at once.
	FailNotTaken FailureKind = "not_taken"
)

// OfRun tells whether a run has failed, which a larger machine, or another try,
// may mend: not the machinery around it, nor what is final.
func (k FailureKind) OfRun() bool {
	switch k {
	case FailJob, FailTooSmall, FailTimeout, FailOutOfMemory:
		return true
	}
	return false
}

// MaxJobFails is how many attempts a job has by default (MAX_JOB_FAILS of the
// request life cycle): the third failure fails it.
const MaxJobFails = 3
