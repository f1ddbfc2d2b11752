package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/results"
)

// Store is the record as used by all handlers together; a *store.Store is one. Each group
// of handlers sees only its own part.
type Store interface {
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	TokenRecord
	TokenCommandRecord
	AuditRecord
	NamedRecord
	RevisionRecord
	OverviewRecord
	ProjectRecord
	SuiteRecord
	RequestRecord
	AdmissionRecord
	QueueRecord
	QueueAccessRecord
	ShareRecord
	OperationRecord
	PackedRecord
	JobRecord
	ProgressRecord
	ResultRecord
	results.HistoryRecord
	CollectorRecord
	EnrolmentRecord
	RunRecord
	BuildRecord
	RetentionRecord
	WorkRecord
}

// Starter calls the workflows of all handlers together; a *starter.Starter is one. The
// record is written before each call; unless a method says otherwise, the reconciliation
// repeats failed calls.
type Starter interface {
	RequestWorkflows
	OperationWorkflows
	RunWorkflows
	RetentionWorkflows
	Watcher
}
