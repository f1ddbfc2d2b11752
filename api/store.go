package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/results"
)

// Store is the record as used by all handlers together; a *store.Store is one. Each group
// of handlers sees only its own part, an interface whose name ends in Record. Handlers call
// all of them under no lock, from many goroutines at once; none is ever nil.
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
	GraphRecord
	DefinitionsRecord
	GraphRunRecord
	AdmissionRecord
	QueueRecord
	QueueAccessRecord
	ShareRecord
	WaitRecord
	OperationRecord
	PackedRecord
	JobRecord
	ProgressRecord
	ResultRecord
	results.HistoryRecord
	CollectorRecord
	EnrolmentRecord
	RunRecord
	AnnouncementRecord
	ProfileRecord
	CodeProfileRecord
	RunFileRecord
	BuildRecord
	RetentionRecord
	WorkRecord
}

// Starter calls the workflows of all handlers together; a *starter.Starter is one. Its parts
// have names that end in Workflows, but for [Watcher]. Handlers call them under no lock, from
// many goroutines at once; none is ever nil. The record is written before each call; unless a
// method says otherwise, the reconciliation repeats failed calls.
type Starter interface {
	RequestWorkflows
	OperationWorkflows
	RunWorkflows
	RetentionWorkflows
	GraphRunWorkflows
	Watcher
}
