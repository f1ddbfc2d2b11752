package bench

// FailureKind decides how a failure is handled; see the table "What can go wrong, and
// who answers" in docs/architecture.md.
type FailureKind string

const (
	// FailInfrastructure: a collector died, a worker shut down, or the API or database
	// could not be reached. The job is retried on the same size class, and the failure
	// does not count.
	FailInfrastructure FailureKind = "infrastructure"
	// FailTooSmall: the machine was too small because the disk limit was reached, or
	// for an unknown reason.
	FailTooSmall FailureKind = "too_small"
	// FailTimeout and FailOutOfMemory also suggest a larger machine.
	FailTimeout     FailureKind = "timeout"
	FailOutOfMemory FailureKind = "out_of_memory"
	// FailJob: a benchmark exited with an error. It counts as an attempt.
	FailJob FailureKind = "job"
	// FailPermanent: an artifact was not found or a definition is invalid. It is final.
	FailPermanent FailureKind = "permanent"
	FailCancelled FailureKind = "cancelled"
	// FailNotTaken: the collector returned the job because its machine had taken another
	// one or no longer takes any. The job is retried immediately.
	FailNotTaken FailureKind = "not_taken"
)

// OfRun reports whether the run itself failed in a way that a larger machine or a
// retry may cure. Infrastructure and permanent failures are not of this sort.
func (k FailureKind) OfRun() bool {
	switch k {
	case FailJob, FailTooSmall, FailTimeout, FailOutOfMemory:
		return true
	}
	return false
}

// MaxJobFails is the default number of attempts of a job (MAX_JOB_FAILS of the
// request life cycle): the third failure is final.
const MaxJobFails = 3
