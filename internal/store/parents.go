package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Ancestor is a direct or indirect ancestor of a request's artifact, without a request of
// its own yet.
type Ancestor struct {
	// ID is for its request, if one is created.
	ID         bench.RequestID
	Tag        string
	Parent     string
	CommitDate time.Time
}

// Lineage is the known ancestry of an artifact.
type Lineage struct {
	// Missing lists the ancestors without a request, the nearest first, up to the first
	// that has one or to the end of the look-back.
	Missing []Ancestor
	// Note says why there is no parent to wait for, if there is none.
	Note string
}

// Creation holds what the creation of a request needs besides the request.
type Creation struct {
	Lineage
	// Limited applies the submitter's limit on waiting work; requests without a submitter
	// have no limit.
	Limited bool
}

// requested returns the missing ancestors that are requested before r: all for a master
// request. The parent of a try build is measured as part of it, so only the ancestors
// above the parent are.
func (l Lineage) requested(r bench.Request) []Ancestor {
	if r.Type == bench.Try && len(l.Missing) > 0 && l.Missing[0].Tag == r.Parent {
		return l.Missing[1:]
	}
	return l.Missing
}

// CreateWithAncestors records a request as [Store.CreateRequest] does, together with
// requests for its missing ancestors, and decides what each of them waits for. It returns
// the new requests in created, ancestors first. The error is a [fairshare.TooManyWaiting]
// if the submitter may not have that many waiting.
func (s *Store) CreateWithAncestors(ctx context.Context, r bench.Request, c Creation) (stored bench.Request, created []bench.Request, err error) {
	err = s.inTx(ctx, "creating request "+string(r.ID), func(tx pgx.Tx) error {
		created = nil
		if err := lockRequests(ctx, tx); err != nil {
			return err
		}
		if r.Tag != "" && r.Type.HasParent() {
			if created, err = requestAncestors(ctx, tx, r, c.Lineage); err != nil {
				return err
			}
			if r.WaitsFor, r.ParentNote, err = waitsFor(ctx, tx, r, c.Lineage); err != nil {
				return err
			}
		}
		var isNew bool
		stored, isNew, err = createRequest(ctx, tx, r)
		if err != nil {
			return err
		}
		if isNew {
			created = append(created, stored)
		}
		if c.Limited {
			return mayWait(ctx, tx, r.Submitter, len(created))
		}
		return nil
	})
	if err != nil {
		return stored, nil, err
	}
	return stored, created, nil
}

// requestAncestors creates the requests of the missing ancestors, the oldest first.
func requestAncestors(ctx context.Context, tx pgx.Tx, r bench.Request, lineage Lineage) ([]bench.Request, error) {
	var created []bench.Request
	missing := lineage.requested(r)
	for i, a := range slices.Backward(missing) {
		from := bench.Origin{Parent: a.Parent, CommitDate: &a.CommitDate}
		ancestor, err := bench.NewMasterCommit(r.Project, a.Tag, from, bench.Selection{}, bench.Submission{Submitter: r.Submitter})
		if err != nil {
			return nil, fmt.Errorf("requesting ancestor %s: %w", a.Tag, err)
		}
		ancestor.ID = a.ID
		above := Lineage{Missing: missing[i+1:]}
		above.Note = fmt.Sprintf("its parent %s is not measured: nobody has asked for it, and the look-back of the project ends here", a.Parent)
		if ancestor.WaitsFor, ancestor.ParentNote, err = waitsFor(ctx, tx, ancestor, above); err != nil {
			return nil, err
		}
		stored, isNew, err := createRequest(ctx, tx, ancestor)
		if err != nil && !errors.Is(err, ErrConflict) { // requested before in another way, which will do
			return nil, fmt.Errorf("requesting ancestor %s: %w", a.Tag, err)
		}
		if isNew {
			created = append(created, stored)
		}
	}
	return created, nil
}

// waitsFor decides what a request with a parent waits for: its parent's request, else
// that of the nearest requested ancestor.
func waitsFor(ctx context.Context, tx pgx.Tx, r bench.Request, lineage Lineage) (tag, note string, err error) {
	if r.Parent == "" {
		return "", "no parent is known", nil
	}
	above := []string{r.Parent}
	for _, a := range lineage.Missing {
		above = append(above, a.Tag, a.Parent)
	}
	tag, err = value[string](ctx, tx, `
		select r.tag from benchmark_request r join unnest($2::text[]) with ordinality as above (tag, place) on above.tag = r.tag
		where r.project = $1 and r.type <> 'adhoc' and r.id <> $3 order by above.place limit 1`, r.Project, above, r.ID)
	unasked := fmt.Sprintf("its parent %s has no request of its own; what is lacking of it is measured together with this one", r.Parent)
	switch {
	case errors.Is(err, ErrNotFound) && r.Type == bench.Try:
		return "", unasked, nil
	case errors.Is(err, ErrNotFound):
		if lineage.Note != "" {
			return "", lineage.Note, nil
		}
		return "", fmt.Sprintf("nobody has asked for its parent %s", r.Parent), nil
	case err != nil:
		return "", "", err
	case tag != r.Parent:
		return tag, unasked, nil
	}
	return tag, "", nil
}

// announce makes requests wait for a tag if their artifacts were made from it before it
// was requested.
func announce(ctx context.Context, tx pgx.Tx, project, tag string) error {
	_, err := tx.Exec(ctx, `
		update benchmark_request set waits_for = $2, parent_note = ''
		where project = $1 and parent = $2 and type in ('master', 'try') and status in ('waiting_for_artifacts', 'artifacts_ready')`,
		project, tag)
	return wrap("linking the children of "+tag, err)
}

// ChildrenOf lists the open requests that wait for a tag.
func (s *Store) ChildrenOf(ctx context.Context, project, tag string) ([]bench.RequestRef, error) {
	children, err := all[bench.RequestRef](ctx, s.pool, `
		select `+requestRefColumns("r")+` from benchmark_request r where project = $1 and waits_for = $2 and status <> 'completed' order by created_at, id`, project, tag)
	return children, wrap("listing the children of "+tag, err)
}

// ParentDone reports whether a request need not wait for its parent: it has none, or the
// parent's jobs have ended.
func (s *Store) ParentDone(ctx context.Context, id bench.RequestID) (bool, error) {
	done, err := value[bool](ctx, s.pool, `
		select r.waits_for is null or not exists (`+undone+`) from benchmark_request r where r.id = $1`, id)
	return done, wrap("checking whether the parent of request "+string(id)+" is done", err)
}

// Notice is a notification that a request's artifacts are ready.
type Notice struct {
	Tag    string
	Parent string // empty: none is known
}

// NoticeReceipt describes the effect of a notification.
type NoticeReceipt struct {
	Request bench.Request
	// Duplicate reports a repeated notification.
	Duplicate bool
	// Late reports that the request had ended, so that nothing was changed.
	Late bool
	// Created lists the ancestors' requests that were created.
	Created []bench.Request
}

// NotifyArtifacts records that a request's artifacts are ready, and under which tag.
// Repeated notifications and those after the request's end change nothing. It returns
// ErrConflict if the request has another artifact, or another request has this one.
func (s *Store) NotifyArtifacts(ctx context.Context, id bench.RequestID, notice Notice, lineage Lineage) (NoticeReceipt, error) {
	var receipt NoticeReceipt
	err := s.inTx(ctx, "recording the artifacts of request "+string(id), func(tx pgx.Tx) error {
		receipt = NoticeReceipt{}
		if err := lockRequests(ctx, tx); err != nil {
			return err
		}
		r, err := lockRequest(ctx, tx, id)
		if err != nil {
			return err
		}
		deliveries, err := value[int](ctx, tx, `
			insert into artifact_notice as n (request_id, tag, parent) values ($1, $2, $3)
			on conflict (request_id, tag, parent) do update set deliveries = n.deliveries + 1, last_at = now()
			returning n.deliveries`, id, notice.Tag, notice.Parent)
		if err != nil {
			return err
		}
		receipt.Request, receipt.Duplicate, receipt.Late = r, deliveries > 1, r.Status == bench.Completed
		switch {
		case receipt.Late:
			return nil
		case r.Tag != "" && r.Tag != notice.Tag:
			return fmt.Errorf("%w: its artifact is %s, not %s", ErrConflict, r.Tag, notice.Tag)
		case r.Status != bench.WaitingForArtifacts:
			receipt.Duplicate = true
			return nil
		}
		r.Tag = notice.Tag
		if notice.Parent != "" {
			r.Parent = notice.Parent
		}
		receipt.Created, err = ready(ctx, tx, r, lineage)
		if err != nil {
			return err
		}
		receipt.Request, err = one[bench.Request](ctx, tx, `select `+requestColumns+` from benchmark_request r where r.id = $1`, id)
		return err
	})
	if err != nil {
		return NoticeReceipt{Request: receipt.Request}, err
	}
	return receipt, nil
}

// ready records the artifact of a waiting request.
func ready(ctx context.Context, tx pgx.Tx, r bench.Request, lineage Lineage) ([]bench.Request, error) {
	taken, err := column[string](ctx, tx, `
		select id from benchmark_request where project = $1 and tag = $2 and type <> 'adhoc' and id <> $3`, r.Project, r.Tag, r.ID)
	if err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("%w: artifact %s is request %s's", ErrConflict, r.Tag, taken[0])
	}
	var created []bench.Request
	if r.Type.HasParent() {
		if created, err = requestAncestors(ctx, tx, r, lineage); err != nil {
			return nil, err
		}
		if r.WaitsFor, r.ParentNote, err = waitsFor(ctx, tx, r, lineage); err != nil {
			return nil, err
		}
	}
	if _, err := tx.Exec(ctx, `
		update benchmark_request set tag = @tag, parent = nullif(@parent, ''), waits_for = nullif(@waits_for, ''), parent_note = @note,
			status = 'artifacts_ready', message = ''
		where id = @id`,
		pgx.NamedArgs{
			"id": r.ID, "tag": r.Tag, "parent": r.Parent, "waits_for": r.WaitsFor, "note": cleanText(r.ParentNote),
		}); err != nil {
		return nil, err
	}
	if err := announce(ctx, tx, r.Project, r.Tag); err != nil {
		return nil, err
	}
	_, err = artifactID(ctx, tx, r.Project, r.Tag)
	return created, err
}

// ExpireArtifacts ends a request that has waited for its artifacts longer than within, by
// the database's clock, and reports whether it did.
func (s *Store) ExpireArtifacts(ctx context.Context, id bench.RequestID, within time.Duration) (expired bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		update benchmark_request set status = 'completed', outcome = 'expired', completed_at = now(), jobs_done_at = now(), message = $3
		where id = $1 and status = 'waiting_for_artifacts' and coalesce(reopened_at, created_at) <= now() - make_interval(secs => $2)`,
		id, within.Seconds(), fmt.Sprintf("nobody said within %s that its artifacts are ready", within))
	return tag.RowsAffected() > 0, wrap("expiring request "+string(id), err)
}

// SupersedeBuilds cancels the earlier try requests of the same pull request that have not
// been admitted, and returns them.
func (s *Store) SupersedeBuilds(ctx context.Context, r bench.Request) ([]bench.Request, error) {
	var older []bench.Request
	err := s.inTx(ctx, "ending older builds of the pull request of request "+string(r.ID), func(tx pgx.Tx) error {
		if err := lockRequests(ctx, tx); err != nil {
			return err
		}
		var err error
		older, err = all[bench.Request](ctx, tx, `
			with older as (
				update benchmark_request set status = 'completed', outcome = 'cancelled', completed_at = now(),
					jobs_done_at = coalesce(jobs_done_at, now()), message = @message
				where project = @project and type = 'try' and pr = @pr and id <> @id and (created_at, id) < (@created, @id)
					and status in ('waiting_for_artifacts', 'artifacts_ready')
				returning *
			)
			select `+requestColumns+` from older r order by r.created_at, r.id`,
			pgx.NamedArgs{
				"project": r.Project, "pr": r.PR, "id": r.ID, "created": r.CreatedAt,
				"message": fmt.Sprintf("cancelled by benchloom: superseded by %s, a newer build of #%d", r.ID, r.PR),
			})
		return err
	})
	return older, err
}

// keptAdmissions bounds how many admissions are kept for each project.
const keptAdmissions = 200

func recordAdmission(ctx context.Context, tx pgx.Tx, project string, id bench.RequestID, a Admission) error {
	if _, err := tx.Exec(ctx, `insert into admission (project, request_id, policy, state) values ($1, $2, $3, $4)`,
		project, id, a.Policy, document(a.State, "{}")); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		delete from admission where project = $1 and id <= (
			select id from admission where project = $1 order by id desc offset $2 limit 1)`, project, keptAdmissions)
	return err
}

// AdmissionRecord is an admission with the state that it was based on.
type AdmissionRecord struct {
	ID        int64
	Project   string
	RequestID bench.RequestID
	Policy    string
	State     json.RawMessage
	At        time.Time
}

// Admissions lists the admissions kept for a project, the oldest first.
func (s *Store) Admissions(ctx context.Context, project string) ([]AdmissionRecord, error) {
	as, err := all[AdmissionRecord](ctx, s.pool, `
		select id, project, request_id, policy, state, at from admission where project = $1 order by id`, project)
	return as, wrap("listing the admissions of project "+project, err)
}
