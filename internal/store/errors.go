package store

import "errors"

// Errors that callers decide on.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the row exists already and differs.
	ErrConflict = errors.New("conflict")
	// ErrStale: it was decided from what has changed since; decide again.
	ErrStale = errors.New("the record has changed since it was read")
	// ErrJobClosed: the job has ended; nothing of it may start.
	ErrJobClosed = errors.New("the job has ended")
	// ErrNobodyWaits: no open request waits for the job.
	ErrNobodyWaits = errors.New("no open request waits for the job")
	// ErrFenced: a newer registration of the collector exists, or it is unknown.
	ErrFenced = errors.New("the collector was registered again since")
	// ErrRunClosed: the run has ended.
	ErrRunClosed = errors.New("the run has ended")
	// ErrNameTaken: another live machine has registered the collector's name.
	ErrNameTaken = errors.New("another live machine has this collector name")
	// ErrDraining: the collector is to take no further job.
	ErrDraining = errors.New("the collector is draining")
	// ErrOutdated: another version of the collector is wanted.
	ErrOutdated = errors.New("the collector is out of date")
	// ErrUnfit: the collector does not meet what the job is constrained to.
	ErrUnfit = errors.New("the collector cannot run the job as it is constrained")
)
