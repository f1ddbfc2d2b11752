package api

import "context"

// Store is the record as all handlers need it together; a *store.Store is one. Each
// group of handlers sees its own part only.
type Store interface {
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	TokenRecord
	NamedRecord
	PageRecord
	ProjectRecord
	SuiteRecord
	RequestRecord
	AdmissionRecord
	QueueRecord
	QueueAccessRecord
	ShareRecord
	OperationRecord
	JobRecord
	ProgressRecord
	ResultRecord
	CollectorRecord
	EnrolmentRecord
	RunRecord
	BuildRecord
}

// Starter reaches the workflows of all handlers together. What it starts or cancels was
// recorded before; unless a method says otherwise, the reconciliation repeats what fails.
type Starter interface {
	RequestWorkflows
	OperationWorkflows
	RunWorkflows
	Watcher
}
