package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Act says who runs an operation, and why.
type Act struct {
	Who    string
	Reason string
	// Key makes the operation idempotent: repeated by the same person, it returns the
	// first answer and does nothing. Empty: no repetition is recognised.
	Key string
	// DryRun reports what would be done, and leaves no trace.
	DryRun bool
}

// Operation is an audit entry: an operator's command and its result.
type Operation struct {
	ID int64 // 0: nothing was done, it was a dry run
	At time.Time
	// Who ran the command Action on Subject: a request's ID, a job's key, an artifact's
	// tag or a project. Project is empty if several are affected.
	Who, Action, Project, Subject string
	Reason                        string
	IdempotencyKey                string
	// Detail holds the command's other arguments.
	Detail json.RawMessage
	Result OperationResult
	// Repeated reports that the key was used before; this is the answer given then.
	Repeated bool
}

// OperationResult reports the effect of an operation, or of a dry run.
type OperationResult struct {
	// Changed is false if there was nothing to do.
	Changed bool   `json:"changed"`
	Message string `json:"message"`
	// The objects affected: requests (at most [shownRequests] are named), and the numbers
	// of jobs, test cases, runs and results.
	Requests  []bench.RequestID `json:"requests,omitempty"`
	Jobs      int               `json:"jobs,omitempty"`
	TestCases int               `json:"test_cases,omitempty"`
	Runs      int               `json:"runs,omitempty"`
	// Graph is the ID of the graph that was written; empty: none, or it is of no interest.
	Graph   string `json:"graph,omitempty"`
	Results int    `json:"results,omitempty"`
	// Preview of what a dry run would measure again; not stored.
	Preview *Preview `json:"-"`
}

// Preview tells what measuring again would cost.
type Preview struct {
	// Jobs lists the first of the jobs, at most [shownPreview].
	Jobs []PreviewedJob
	// MachineSeconds is the time that all of them took when they last succeeded, by their
	// test cases; Unknown counts those that never did.
	MachineSeconds float64
	Unknown        int
}

// PreviewedJob is a job that would be measured again.
type PreviewedJob struct {
	// Job is the former one.
	Job bench.Job
	// TestCases counts its test cases that would be measured; Seconds is the time that they
	// took last; 0: unknown.
	TestCases int
	Seconds   float64
}

// shownPreview bounds the jobs of a preview that are listed.
const shownPreview = 100

// shownRequests bounds how many requests an operation names.
const shownRequests = 20

const operationColumns = `a.id, a.at, a.who, a.action, a.project, a.subject, a.reason,
	coalesce(a.idempotency_key, '') as idempotency_key, a.detail, a.result, false as repeated`

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// audited runs an operation and writes its audit entry, both or neither. If the key was
// used before, nothing is done: the same operation returns its entry, a different one
// ErrConflict.
func (s *Store) audited(ctx context.Context, what Operation, act Act, do func(tx pgx.Tx, entry int64) (OperationResult, error)) (Operation, error) {
	what.Who, what.Reason, what.IdempotencyKey = act.Who, cleanText(act.Reason), act.Key
	var done Operation
	err := s.inTx(ctx, what.Action+" "+what.Subject, func(tx pgx.Tx) error {
		if act.Key != "" && !act.DryRun {
			var err error
			if done, err = repeated(ctx, tx, what); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		entered, err := one[Operation](ctx, tx, `
			insert into audit as a (who, action, project, subject, reason, idempotency_key, detail)
			values (@who, @action, @project, @subject, @reason, nullif(@key, ''), @detail) returning `+operationColumns,
			pgx.NamedArgs{
				"who": what.Who, "action": what.Action, "project": what.Project, "subject": what.Subject,
				"reason": what.Reason, "key": act.Key, "detail": document(what.Detail, "{}"),
			})
		if err != nil {
			return err
		}
		result, err := do(tx, entered.ID)
		if err != nil {
			return err
		}
		if act.DryRun {
			done = what
			done.Result = result
			return errDryRun
		}
		done, err = one[Operation](ctx, tx, `update audit a set result = $2 where a.id = $1 returning `+operationColumns, entered.ID, result)
		return err
	})
	if err != nil && !(act.DryRun && errors.Is(err, errDryRun)) {
		return Operation{}, err
	}
	return done, nil
}

// Enter adds an entry about something that was done in other transactions.
func (s *Store) Enter(ctx context.Context, what Operation) error {
	_, err := s.pool.Exec(ctx, `
		insert into audit (who, action, project, subject, reason, detail, result)
		values (@who, @action, @project, @subject, @reason, @detail, @result)`,
		pgx.NamedArgs{
			"who": what.Who, "action": what.Action, "project": what.Project, "subject": what.Subject, "reason": cleanText(what.Reason),
			"detail": document(what.Detail, "{}"), "result": what.Result,
		})
	return wrap("recording '"+what.Action+" "+what.Subject+"' in the audit", err)
}

// repeated finds the entry of an operation with the same key. It locks the key, so that
// concurrent calls run one after the other.
func repeated(ctx context.Context, tx pgx.Tx, what Operation) (Operation, error) {
	if err := lock(ctx, tx, "idempotency key "+what.Who+" "+what.IdempotencyKey); err != nil {
		return Operation{}, err
	}
	before, err := one[Operation](ctx, tx, `select `+operationColumns+` from audit a where a.who = $1 and a.idempotency_key = $2`,
		what.Who, what.IdempotencyKey)
	if err != nil {
		return Operation{}, err
	}
	if before.Action != what.Action || before.Project != what.Project || before.Subject != what.Subject || !sameDocument(before.Detail, what.Detail) {
		return Operation{}, fmt.Errorf("%w: the idempotency key %q was used for '%s %s' on %s; use another one",
			ErrConflict, what.IdempotencyKey, before.Action, before.Subject, before.At.UTC().Format(time.RFC3339))
	}
	before.Repeated = true
	return before, nil
}

// sameDocument compares JSON documents; a missing one equals an empty one.
func sameDocument(a, b json.RawMessage) bool {
	var x, y any
	errX := json.Unmarshal([]byte(document(a, "{}")), &x)
	errY := json.Unmarshal([]byte(document(b, "{}")), &y)
	textX, _ := json.Marshal(x) // a decoded value: cannot fail
	textY, _ := json.Marshal(y)
	return errX == nil && errY == nil && bytes.Equal(textX, textY)
}

// detail encodes a command's arguments.
func detail(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: encoding an operation's detail: %v", err)) // plain structs: cannot happen
	}
	return text
}

// AuditFilter narrows a list of operations; zero values do not narrow.
type AuditFilter struct {
	Project, Who string
	// Subject, if a request's ID, also finds operations on other subjects, such as a job, that have affected the request.
	// Only the results of these few are searched.
	Subject string
	// Before continues a list: it returns only entries older than this one.
	Before int64
	Limit  int // 1 to 500
}

// Audit lists operations, the newest first.
func (s *Store) Audit(ctx context.Context, f AuditFilter) ([]Operation, error) {
	entries, err := all[Operation](ctx, s.pool, `
		select `+operationColumns+` from audit a
		where (@project = '' or a.project = @project) and (@who = '' or a.who = @who)
			and (@subject = '' or a.subject = @subject or a.action not like 'request %' and a.result -> 'requests' ? @subject)
			and (@before = 0 or a.id < @before)
		order by a.id desc limit @limit`,
		pgx.NamedArgs{
			"project": f.Project, "who": f.Who, "subject": f.Subject, "before": f.Before, "limit": min(max(1, f.Limit), maxListed),
		})
	return entries, wrap("reading the audit", err)
}
