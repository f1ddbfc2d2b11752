package store

import "errors"

// Errors that callers handle.
var (
	// ErrNotFound reports that there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrConflict reports that the row exists already and differs.
	ErrConflict = errors.New("conflict")
	// ErrBusy reports that the database took longer than the call may; it has changed nothing.
	ErrBusy = errors.New("the database is busy")
	// ErrStale reports that a decision was based on data that has changed since; decide
	// again.
	ErrStale = errors.New("the record has changed since it was read")
	// ErrJobClosed reports that the job has ended, so that no run of it may start.
	ErrJobClosed = errors.New("the job has ended")
	// ErrNobodyWaits reports that no open request waits for the job.
	ErrNobodyWaits = errors.New("no open request waits for the job")
	// ErrFenced reports that the collector is unknown, or has a newer registration.
	ErrFenced = errors.New("the collector was registered again since")
	// ErrRunClosed reports that the run has ended.
	ErrRunClosed = errors.New("the run has ended")
	// ErrNameTaken reports that another live machine has registered the collector's name.
	ErrNameTaken = errors.New("another live machine has this collector name")
	// ErrDraining reports that the collector is drained and takes no further jobs.
	ErrDraining = errors.New("the collector is draining")
	// ErrOutdated reports that the collector should run another version.
	ErrOutdated = errors.New("the collector is out of date")
	// ErrUnfit reports that the collector does not meet the job's constraints.
	ErrUnfit = errors.New("the collector does not meet the job's constraints")
	// ErrElsewhere reports that the job's task is not for this collector.
	ErrElsewhere = errors.New("the job waits elsewhere")
	// ErrUnderWay reports that a run of the task's dispatch goes on.
	ErrUnderWay = errors.New("a run of the job is under way")
	// ErrStaleDispatch reports a task of a dispatch that was replaced.
	ErrStaleDispatch = errors.New("the job was dispatched again")
)
