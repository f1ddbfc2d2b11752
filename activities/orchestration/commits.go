package orchestration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Watches creates and removes the Schedules that look at commits; a *starter.Starter is one.
// The reconciliation calls it under no lock; it is never nil.
type Watches interface {
	// WatchProject creates a project's Schedule, or changes its pause.
	WatchProject(ctx context.Context, project string, every time.Duration) error
	// UnwatchProject removes a project's Schedule, if there is one.
	UnwatchProject(ctx context.Context, project string) error
}

// Watching holds the dependencies of looking at commits.
type Watching struct {
	Sources Sources
	// Random draws request IDs; crypto/rand.Reader is one.
	Random io.Reader
	// Now is the clock.
	Now func() time.Time
}

// Sources opens the commit sources that projects name. WatchCommits calls it under no lock,
// for several projects at once; it is never nil.
type Sources interface {
	Open(s bench.CommitSource) (commits.Source, error)
}

// namedInResult bounds the number of requests that a look's result names.
const namedInResult = 100

// WatchCommits looks at a project's commits: it records new ones, requests them and
// starts the requests' workflows.
//
// The recorded head moves last, so a look that dies is repeated and finds its earlier
// requests. An unreadable source is a result, recorded with the time since when: the next
// look follows anyway.
func (a *Activities) WatchCommits(ctx context.Context, in protocol.WatchInput) (protocol.WatchResult, error) {
	p, config, err := a.config(ctx, in.Project)
	if err != nil {
		return protocol.WatchResult{}, err
	}
	if !config.Source.Configured() {
		if err := a.Workflows.UnwatchProject(ctx, in.Project); err != nil {
			return protocol.WatchResult{}, err
		}
		return protocol.WatchResult{}, a.Store.RecordPollInterval(ctx, in.Project, 0)
	}
	stop := beat(ctx)
	defer stop()
	a.Points.Reach(ctx, failpoint.Looking)
	state, err := a.Store.SourceState(ctx, in.Project)
	if err != nil {
		return protocol.WatchResult{}, err
	}
	l := &commitLook{
		Activities: a, project: in.Project, config: config, state: state,
		first:  state.LastOKAt == nil || state.Repository != config.Source.Git,
		result: protocol.WatchResult{Repository: config.Source.Git, Branch: config.Source.BranchName()},
	}
	if p.SuiteHash == "" {
		return l.failed(ctx, errors.New("the project has no suite, so its commits cannot be measured; apply it with one ('benchloom project apply')"))
	}
	source, err := a.Watching.Sources.Open(config.Source)
	if err != nil {
		return l.failed(ctx, err)
	}
	l.source = source
	if l.history, err = source.Read(ctx, l.query()); err != nil {
		if ctx.Err() != nil {
			return l.result, err
		}
		return l.failed(ctx, err)
	}
	return l.found(ctx)
}

// beat sends heartbeats until it is stopped. Without them, an activity could not be
// cancelled and its death would go unnoticed.
func beat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// commitLook is one look at a project's commits.
type commitLook struct {
	*Activities
	project string
	config  bench.ProjectConfig
	state   store.SourceState
	// first is set at the first look at this repository.
	first   bool
	source  commits.Source
	history commits.History
	result  protocol.WatchResult
}

func (l *commitLook) query() commits.Query {
	q := commits.Query{
		Most: l.config.Source.LookBack.Limit(), Since: l.config.Source.LookBack.Since(l.Watching.Now()), Releases: l.config.Source.Releases,
	}
	if !l.first {
		q.Known = l.state.Head
	}
	return q
}

// failed records that the source cannot be read.
func (l *commitLook) failed(ctx context.Context, reason error) (protocol.WatchResult, error) {
	state, err := l.Store.RecordFailedPoll(ctx, l.project, reason.Error())
	if err != nil {
		return l.result, err
	}
	since := time.Duration(0)
	if state.FailingSince != nil {
		since = max(0, l.Watching.Now().Sub(*state.FailingSince)).Round(time.Second)
	}
	l.Log.WarnContext(ctx, "the commits of a project cannot be read", "project", l.project, "repository", l.config.Source.Git, "failing_for", since, "error", reason)
	l.result.Failed = reason.Error()
	return l.result, nil
}

// found records the findings of a look, and requests what is new.
func (l *commitLook) found(ctx context.Context) (protocol.WatchResult, error) {
	h := l.history
	l.result.Head = h.Head
	for _, remark := range h.Remarks {
		l.remark(remark)
	}
	wanted := h.New
	if l.first {
		wanted = min(l.config.Source.FirstRequests(), len(h.Commits))
	}
	recorded := make([]store.Commit, len(h.Commits))
	for i, c := range h.Commits {
		recorded[i] = store.Commit{SHA: c.SHA, Parent: c.Parent, CommittedAt: c.CommittedAt, Author: c.Author, Subject: c.Subject, Skipped: i >= wanted}
	}
	added, err := l.Store.RecordCommits(ctx, l.project, recorded)
	if err != nil {
		return l.result, err
	}
	l.result.Recorded = len(added)
	if err := l.rewritten(ctx); err != nil {
		return l.result, err
	}
	// Oldest first, so that their times of creation follow the history.
	for _, c := range slices.Backward(h.Commits[:wanted]) {
		from := bench.Origin{Parent: c.Parent, CommitDate: &c.CommittedAt}
		r, err := bench.NewMasterCommit(l.project, c.SHA, from, bench.Selection{}, byCommitSource)
		if err != nil {
			return l.result, err
		}
		if err := l.request(ctx, r); err != nil {
			return l.result, err
		}
	}
	if err := l.releases(ctx); err != nil {
		return l.result, err
	}
	if err := l.takeDefinitions(ctx); err != nil {
		return l.result, err
	}
	return l.result, l.Store.RecordPoll(ctx, store.SourceState{
		Project: l.project, Repository: l.config.Source.Git, Releases: l.config.Source.Releases, Head: h.Head, Message: strings.Join(l.result.Remarks, "; "),
	})
}

func (l *commitLook) remark(text string) { l.result.Remarks = append(l.result.Remarks, text) }

// rewritten records the commits that a rewritten branch no longer holds. An emptied
// branch holds none.
func (l *commitLook) rewritten(ctx context.Context) error {
	emptied := l.history.Head == ""
	if !l.history.Rewritten && (l.state.Head == "" || !l.first && !emptied) {
		return nil
	}
	shas, err := l.Store.CommitsOnBranch(ctx, l.project)
	if err != nil {
		return err
	}
	on := make(map[string]bool)
	if !emptied {
		if on, err = l.source.OnBranch(ctx, l.history.Head, shas); err != nil {
			return err
		}
	}
	left := slices.DeleteFunc(shas, func(sha string) bool { return on[sha] })
	if len(left) == 0 {
		return nil
	}
	open, err := l.Store.LeaveBranch(ctx, l.project, left)
	if err != nil {
		return err
	}
	l.result.Left = len(left)
	l.Log.WarnContext(ctx, "a branch was rewritten", "project", l.project, "branch", l.config.Source.BranchName(), "commits_left", len(left), "open_requests", len(open))
	return nil
}

// releases requests new release tags, oldest first. At the first look at tags, or with
// another pattern, only the newest are requested.
func (l *commitLook) releases(ctx context.Context) error {
	recorded, err := l.Store.Releases(ctx, l.project)
	if err != nil {
		return err
	}
	known := make(map[string]string, len(recorded))
	for _, r := range recorded {
		known[r.Tag] = r.SHA
	}
	var fresh []store.ReleaseTag
	var unfit []string
	for _, r := range l.history.Releases {
		sha, there := known[r.Tag]
		switch {
		case bench.CheckTag(r.Tag) != nil:
			unfit = append(unfit, r.Tag)
		case !there:
			fresh = append(fresh, store.ReleaseTag{Tag: r.Tag, SHA: r.SHA, TaggedAt: r.At})
		case sha != r.SHA && !l.first:
			l.remark(fmt.Sprintf("tag %s has moved from %.12s to %.12s; what was requested is the first one", r.Tag, sha, r.SHA))
		}
	}
	if len(unfit) > 0 {
		l.remark("left out, because they cannot name an artifact: the tags " + someOf(unfit))
	}
	slices.SortStableFunc(fresh, func(a, b store.ReleaseTag) int { return a.TaggedAt.Compare(b.TaggedAt) })
	wanted := fresh
	if l.first || l.state.Releases != l.config.Source.Releases {
		since := l.config.Source.LookBack.Since(l.Watching.Now())
		wanted = slices.DeleteFunc(slices.Clone(fresh), func(r store.ReleaseTag) bool { return r.TaggedAt.Before(since) })
		wanted = wanted[max(0, len(wanted)-l.config.Source.FirstRequests()):]
	}
	for _, r := range wanted {
		asked, err := bench.NewRelease(l.project, r.Tag, &r.TaggedAt, bench.Selection{}, byCommitSource)
		if err != nil {
			return err
		}
		if err := l.request(ctx, asked); err != nil {
			return err
		}
	}
	return l.Store.RecordReleases(ctx, l.project, fresh)
}

// someOf names the first items of a list.
func someOf(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return strings.Join(names, ", ")
}

var byCommitSource = bench.Submission{Submitter: bench.CommitSubmitter}

// request creates a request and starts its workflow, and the workflows of the ancestors
// requested with it. An existing request stays as it is.
func (l *commitLook) request(ctx context.Context, r bench.Request) error {
	taken, err := intake.Intake{Record: l.Store, Random: l.Watching.Random, Now: l.Watching.Now}.Create(ctx, r, l.config)
	if errors.Is(err, store.ErrConflict) {
		l.Log.InfoContext(ctx, "a commit or tag was requested before in another way", "project", l.project, "tag", r.Tag, "request", taken.Request.ID)
		return nil
	}
	if err != nil {
		return err
	}
	for _, created := range taken.Created {
		l.result.Requests++
		if len(l.result.Requested) < namedInResult {
			l.result.Requested = append(l.result.Requested, created.Tag)
		}
	}
	unstarted := taken.Created
	if !taken.IsNew() && taken.Request.WorkflowStartedAt == nil && taken.Request.Status != bench.Completed {
		unstarted = append(unstarted, taken.Request)
	}
	for _, request := range unstarted {
		if err := l.Workflows.StartRequest(ctx, request.Ref()); err != nil {
			return err
		}
		if err := l.Store.MarkWorkflowStarted(ctx, request.ID); err != nil {
			return err
		}
	}
	return nil
}

// EnsureWatches makes sure that exactly the projects with a commit source have a Schedule
// that looks at it. It checks the projects whose Schedule is not confirmed, or all of
// them, as after a loss of Temporal's database. A project that fails does not hold up
// the others.
func (a *Activities) EnsureWatches(ctx context.Context, all bool) error {
	projects, err := a.Store.Projects(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range projects {
		failed = append(failed, a.ensureWatch(ctx, p, all))
	}
	return errors.Join(failed...)
}

func (a *Activities) ensureWatch(ctx context.Context, p store.Project, again bool) error {
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		a.Log.WarnContext(ctx, "skipped the commits of a project: its configuration is invalid", "project", p.Name, "error", err)
		return nil
	}
	state, err := a.Store.SourceState(ctx, p.Name)
	if err != nil {
		return err
	}
	var every time.Duration
	if config.Source.Configured() {
		every = config.Source.Interval().Truncate(time.Second)
	}
	confirmed := state.EverySeconds == int(every.Seconds())
	switch {
	case confirmed && (!again || every == 0):
		return nil
	case every == 0:
		err = a.Workflows.UnwatchProject(ctx, p.Name)
	default:
		err = a.Workflows.WatchProject(ctx, p.Name, every)
	}
	if err != nil || confirmed {
		return err
	}
	return a.Store.RecordPollInterval(ctx, p.Name, every)
}
