package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Commit is a commit of a project's branch, as its source reported it.
type Commit struct {
	Project string
	SHA     string
	// Parent is the first parent; empty if there is none, or none is known.
	Parent string
	// Position orders commits along the history: a commit's is its parent's plus 1. The
	// store assigns it.
	Position    int64
	CommittedAt time.Time
	Author      string
	Subject     string
	// OnBranch is false if the branch was rewritten and no longer contains the commit.
	OnBranch bool
	// Skipped reports that the commit was too old to be requested when it was first seen.
	// It never changes.
	Skipped     bool
	FirstSeenAt time.Time
}

// ReleaseTag is a tag of a release.
type ReleaseTag struct {
	Tag      string
	SHA      string
	TaggedAt time.Time
}

// SourceState is the progress and health of polling a project's repository.
type SourceState struct {
	Project string
	// Repository and Releases are the configuration to which Head and the recorded
	// releases belong.
	Repository string
	Releases   string
	// Head is the newest commit up to which all requests are made; empty: none yet.
	Head     string
	LastOKAt *time.Time
	// FailingSince is nil if the last poll succeeded.
	FailingSince *time.Time
	// Message explains a failure, or holds a remark.
	Message string
	// EverySeconds is the Schedule's last confirmed interval; 0: there is no Schedule.
	EverySeconds int
}

// CommitRequest is a commit with its request, if any.
type CommitRequest struct {
	Commit
	RequestID     bench.RequestID // empty: none
	RequestStatus bench.RequestStatus
	Outcome       bench.Outcome
}

const commitColumns = `c.project, c.sha, c.parent, c.position, c.committed_at, c.author, c.subject, c.on_branch, c.skipped, c.first_seen_at`

// RecordCommits records part of a branch's first-parent history, the newest commit first,
// each the child of the next. A known commit keeps the time at which it was first seen,
// and is marked as on the branch again. RecordCommits returns the SHAs that are new, the
// oldest first.
func (s *Store) RecordCommits(ctx context.Context, project string, history []Commit) (added []string, err error) {
	if len(history) == 0 {
		return nil, nil
	}
	err = s.inTx(ctx, "recording commits of project "+project, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "commits "+project); err != nil {
			return err
		}
		first, err := firstPosition(ctx, tx, project, history)
		if err != nil {
			return err
		}
		added, err = insertCommits(ctx, tx, project, history, first)
		return err
	})
	return added, err
}

// firstPosition returns the position of the newest commit, derived from any known commit
// of the history, else from the parent of its oldest.
func firstPosition(ctx context.Context, tx pgx.Tx, project string, history []Commit) (int64, error) {
	shas := make([]string, len(history), len(history)+1)
	for i, c := range history {
		if i > 0 && history[i-1].Parent != c.SHA {
			return 0, fmt.Errorf("%w: commit %s is not the parent of %s", ErrConflict, c.SHA, history[i-1].SHA)
		}
		shas[i] = c.SHA
	}
	shas = append(shas, history[len(history)-1].Parent)
	first, err := value[int64](ctx, tx, `
		select c.position + w.place - 1
		from unnest($2::text[]) with ordinality as w (sha, place) join commit c on c.project = $1 and c.sha = w.sha
		order by w.place desc limit 1`, project, shas)
	if errors.Is(err, ErrNotFound) {
		return int64(len(history)), nil
	}
	return first, wrap("reading positions", err)
}

func insertCommits(ctx context.Context, tx pgx.Tx, project string, history []Commit, first int64) ([]string, error) {
	n := len(history)
	shas, parents, positions, dates := make([]string, n), make([]string, n), make([]int64, n), make([]time.Time, n)
	authors, subjects, skipped := make([]string, n), make([]string, n), make([]bool, n)
	for i := range history {
		c := history[n-1-i] // the oldest first
		shas[i], parents[i], positions[i], dates[i] = c.SHA, c.Parent, first-int64(n-1-i), c.CommittedAt
		authors[i], subjects[i], skipped[i] = cleanText(c.Author), cleanText(c.Subject), c.Skipped
	}
	rows, err := tx.Query(ctx, `
		insert into commit as old (project, sha, parent, position, committed_at, author, subject, skipped)
		select @project, w.sha, w.parent, w.position, w.committed_at, w.author, w.subject, w.skipped
		from unnest(@shas::text[], @parents::text[], @positions::bigint[], @dates::timestamptz[], @authors::text[], @subjects::text[], @skipped::boolean[])
			as w (sha, parent, position, committed_at, author, subject, skipped)
		on conflict (project, sha) do update set on_branch = true, parent = excluded.parent, position = excluded.position
		where (old.on_branch, old.parent, old.position) is distinct from (true, excluded.parent, excluded.position)
		returning sha, (xmax = 0) as added`,
		pgx.NamedArgs{
			"project": project, "shas": shas, "parents": parents, "positions": positions, "dates": dates,
			"authors": authors, "subjects": subjects, "skipped": skipped,
		})
	if err != nil {
		return nil, wrap("inserting commits", err)
	}
	type inserted struct {
		SHA   string
		Added bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[inserted])
	var added []string
	for _, i := range all {
		if i.Added {
			added = append(added, i.SHA)
		}
	}
	return added, wrap("inserting commits", unknownReference(err))
}

// CommitsOnBranch lists the SHAs of a project's recorded commits that are on its branch,
// the newest first.
func (s *Store) CommitsOnBranch(ctx context.Context, project string) ([]string, error) {
	shas, err := column[string](ctx, s.pool, `select sha from commit where project = $1 and on_branch order by position desc, sha`, project)
	return shas, wrap("listing commits of project "+project, err)
}

// LeaveBranch records that a rewritten branch no longer contains commits. Nothing is
// deleted or cancelled: the message of their open requests says so, and a person decides.
// It returns those requests.
func (s *Store) LeaveBranch(ctx context.Context, project string, shas []string) ([]bench.RequestID, error) {
	var open []bench.RequestID
	err := s.inTx(ctx, "recording a rewritten branch of project "+project, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "commits "+project); err != nil {
			return err
		}
		if err := lockRequests(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update commit set on_branch = false where project = $1 and sha = any($2) and on_branch`, project, shas); err != nil {
			return err
		}
		var err error
		open, err = column[bench.RequestID](ctx, tx, `
			update benchmark_request r set message = ltrim(split_part(r.message, '`+leftBranchMark+`', 1) || `+leftBranch+`, '; ')
			where r.project = $1 and r.tag = any($2) and r.type <> 'adhoc' and r.status <> 'completed'
			returning r.id`, project, shas)
		return err
	})
	return open, err
}

// leftBranch ends the message of a request r whose commit has left the branch,
// beginning with leftBranchMark; empty for all others.
const (
	leftBranchMark = `; the branch was rewritten`
	leftBranch     = `coalesce((select '` + leftBranchMark + ` and no longer holds this commit, which is measured all the same; ' ||
		'use "benchloom request cancel ' || r.id || '" if nobody wants it'
		from commit c where c.project = r.project and c.sha = r.tag and not c.on_branch and r.type <> 'adhoc'), '')`
)

// Commit reads a recorded commit.
func (s *Store) Commit(ctx context.Context, project, sha string) (Commit, error) {
	c, err := one[Commit](ctx, s.pool, `select `+commitColumns+` from commit c where c.project = $1 and c.sha = $2`, project, sha)
	return c, wrap("reading commit "+sha, err)
}

// RecentCommits lists a project's commits with their requests, by descending position, at
// most limit (1 to 500).
func (s *Store) RecentCommits(ctx context.Context, project string, limit int) ([]CommitRequest, error) {
	cs, err := all[CommitRequest](ctx, s.pool, `
		select `+commitColumns+`, coalesce(r.id, '') as request_id, coalesce(r.status, '') as request_status, coalesce(r.outcome, '') as outcome
		from commit c left join benchmark_request r on r.project = c.project and r.tag = c.sha and r.type <> 'adhoc'
		where c.project = $1
		order by c.position desc, c.on_branch desc, c.first_seen_at desc, c.sha limit $2`, project, min(max(1, limit), maxListed))
	return cs, wrap("listing commits of project "+project, err)
}

// CommitsBetween lists those of the commits a and b that are recorded and, if both are, the
// commits of the branch between them, all with their requests: a and b first, then by
// descending position, at most limit (1 to 500).
func (s *Store) CommitsBetween(ctx context.Context, project, a, b string, limit int) ([]CommitRequest, error) {
	cs, err := all[CommitRequest](ctx, s.pool, `
		with ends as (
			select * from commit where project = @project and sha in (@a, @b)
		), between as ( -- read by the index: its ends are values here, and in no condition with others
			select c.* from commit c
			where c.project = @project and c.on_branch and c.sha not in (@a, @b)
				and c.position > (select min(position) from ends having count(*) = 2) and c.position < (select max(position) from ends having count(*) = 2)
			order by c.position desc, c.sha limit @limit
		)
		select `+commitColumns+`, coalesce(r.id, '') as request_id, coalesce(r.status, '') as request_status, coalesce(r.outcome, '') as outcome
		from (select * from ends union all select * from between) c
		left join benchmark_request r on r.project = @project and r.tag = c.sha and r.type <> 'adhoc'
		order by c.sha in (@a, @b) desc, c.position desc, c.sha limit @limit`,
		pgx.NamedArgs{"project": project, "a": a, "b": b, "limit": min(max(1, limit), maxListed)})
	return cs, wrap("listing the commits between "+a+" and "+b, err)
}

// MissingAncestors lists the first-parent ancestors of a commit that have no completed
// tracked request (whatever its outcome), the nearest first. The list ends before the
// first ancestor that has one, after most entries, and before commits older than since.
// It also ends before skipped commits without a request, as they are older than the
// project wants. The ancestors of an unrecorded commit are unknown.
func (s *Store) MissingAncestors(ctx context.Context, project, sha string, most int, since time.Time) ([]Commit, error) {
	const missing = `c.committed_at >= @since and not exists (
			select from benchmark_request r
			where r.project = @project and r.tag = c.sha and r.type <> 'adhoc' and r.status = 'completed')
		and (not c.skipped or exists (
			select from benchmark_request r where r.project = @project and r.tag = c.sha and r.type <> 'adhoc'))`
	cs, err := all[Commit](ctx, s.pool, `
		with recursive chain as (
			select parent, 0 as depth from commit where project = @project and sha = @sha
			union all
			select c.parent, chain.depth + 1
			from chain join commit c on c.project = @project and c.sha = chain.parent
			where chain.depth < @most and `+missing+`
		)
		select `+commitColumns+`
		from chain join commit c on c.project = @project and c.sha = chain.parent
		where chain.depth < @most and `+missing+`
		order by chain.depth`, pgx.NamedArgs{"project": project, "sha": sha, "most": most, "since": since})
	return cs, wrap("listing ancestors of commit "+sha, err)
}

// Releases lists the recorded releases of a project, by tag.
func (s *Store) Releases(ctx context.Context, project string) ([]ReleaseTag, error) {
	tags, err := all[ReleaseTag](ctx, s.pool, `select tag, sha, tagged_at from release_tag where project = $1 order by tag`, project)
	return tags, wrap("listing releases of project "+project, err)
}

// RecordReleases records releases. A recorded release never changes, as results belong to
// it.
func (s *Store) RecordReleases(ctx context.Context, project string, tags []ReleaseTag) error {
	return s.inTx(ctx, "recording releases of project "+project, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "commits "+project); err != nil {
			return err
		}
		for _, t := range tags {
			if _, err := tx.Exec(ctx, `
				insert into release_tag (project, tag, sha, tagged_at) values ($1, $2, $3, $4) on conflict (project, tag) do nothing`,
				project, t.Tag, t.SHA, t.TaggedAt); err != nil {
				return wrap("release "+t.Tag, unknownReference(err))
			}
		}
		return nil
	})
}

const sourceColumns = `project, repository, releases, head, last_ok_at, failing_since, message, every_seconds`

// SourceState reads the state of polling a project's repository; only the project is set
// before the first poll.
func (s *Store) SourceState(ctx context.Context, project string) (SourceState, error) {
	state, err := one[SourceState](ctx, s.pool, `select `+sourceColumns+` from commit_source where project = $1`, project)
	if errors.Is(err, ErrNotFound) {
		return SourceState{Project: project}, nil
	}
	return state, wrap("reading the state of the commit source of project "+project, err)
}

// RecordPoll records a successful poll and its findings. Its message is a remark; empty:
// none.
func (s *Store) RecordPoll(ctx context.Context, state SourceState) error {
	_, err := s.pool.Exec(ctx, `
		insert into commit_source (project, repository, releases, head, last_ok_at, message) values (@project, @repository, @releases, @head, now(), @message)
		on conflict (project) do update set repository = excluded.repository, releases = excluded.releases, head = excluded.head,
			last_ok_at = excluded.last_ok_at, failing_since = null, message = excluded.message`,
		pgx.NamedArgs{
			"project": state.Project, "repository": state.Repository, "releases": state.Releases, "head": state.Head,
			"message": cleanText(state.Message),
		})
	return wrap("recording a look at the commits of project "+state.Project, unknownReference(err))
}

// RecordFailedPoll records a failed poll and its reason. The returned state says since
// when polls have failed.
func (s *Store) RecordFailedPoll(ctx context.Context, project, reason string) (SourceState, error) {
	state, err := one[SourceState](ctx, s.pool, `
		insert into commit_source (project, failing_since, message) values ($1, now(), $2)
		on conflict (project) do update set failing_since = coalesce(commit_source.failing_since, now()), message = excluded.message
		returning `+sourceColumns, project, cleanText(reason))
	return state, wrap("recording a failed look at the commits of project "+project, unknownReference(err))
}

// RecordPollInterval records the interval of a project's Schedule; 0: it has no Schedule.
func (s *Store) RecordPollInterval(ctx context.Context, project string, every time.Duration) error {
	_, err := s.pool.Exec(ctx, `
		insert into commit_source (project, every_seconds) values ($1, $2)
		on conflict (project) do update set every_seconds = excluded.every_seconds`, project, int(every.Seconds()))
	return wrap("recording the schedule of project "+project, unknownReference(err))
}
