package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// OverviewRecord reads what the whole service does and lacks.
type OverviewRecord interface {
	Unserved(ctx context.Context, offlineAfter time.Duration) ([]store.Unserved, error)
	StuckRequests(ctx context.Context) ([]store.Stuck, error)
	Pauses(ctx context.Context) ([]store.Pause, error)
	// RunningRuns lists at most limit runs, the oldest first, and counts all.
	RunningRuns(ctx context.Context, limit int) (list []store.Running, total int, err error)
	// NewestVerdicts lists requests that have ended, project by project, the latest first.
	NewestVerdicts(ctx context.Context) ([]bench.Request, error)
}

// overviewHandlers serve the overview.
type overviewHandlers struct {
	*base
	record   OverviewRecord
	projects *projectHandlers
}

func (s *overviewHandlers) register() {
	handle(s.base, operation{id: "get-overview", method: http.MethodGet, path: "/overview", need: toRead, tag: "service",
		summary:     "Show what needs attention, what runs, and the newest verdicts",
		description: "What is wrong as the record knows it: a pool without a collector in which jobs wait, a request that does not go on, a repository that cannot be read, a paused project."}, s.getOverview)
}

const (
	// shownRunning bounds the runs on the overview.
	shownRunning = 50
	// shownVerdicts bounds the requests of each project there.
	shownVerdicts = 3
)

func (s *overviewHandlers) getOverview(ctx context.Context, _ *none) (*body[apiclient.Overview], error) {
	out := apiclient.Overview{Attention: []apiclient.Attention{}, Running: []apiclient.Running{}, Verdicts: []apiclient.LatestVerdict{}}
	var err error
	if out.Attention, err = s.attention(ctx); err != nil {
		return nil, err
	}
	running, total, err := s.record.RunningRuns(ctx, shownRunning)
	if err != nil {
		return nil, err
	}
	out.RunningTotal = total
	for _, r := range running {
		one := apiclient.Running{
			Run: r.Run, Collector: r.Collector, Reason: r.Reason, SizeClass: r.SizeClass, StartedAt: r.StartedAt, Job: r.Job, Name: r.Name, Kind: r.Kind,
			Project: r.Project, Tag: r.Tag, Request: r.Request,
		}
		if len(r.Progress) > 0 {
			if err := json.Unmarshal(r.Progress, &one.Progress); err != nil {
				return nil, fmt.Errorf("reading the progress of run %s: %w", r.Run, err)
			}
		}
		out.Running = append(out.Running, one)
	}
	ended, err := s.record.NewestVerdicts(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range ended {
		n := len(out.Verdicts)
		if n == 0 || out.Verdicts[n-1].Project != r.Project {
			out.Verdicts = append(out.Verdicts, apiclient.LatestVerdict{Project: r.Project})
			n++
		}
		if of := &out.Verdicts[n-1]; len(of.Requests) < shownVerdicts {
			of.Requests = append(of.Requests, requestOf(r))
		}
	}
	return answer(out, nil)
}

// attention lists what is wrong, the gravest first.
func (s *overviewHandlers) attention(ctx context.Context) ([]apiclient.Attention, error) {
	all := []apiclient.Attention{}
	unserved, err := s.record.Unserved(ctx, s.OfflineAfter)
	if err != nil {
		return nil, err
	}
	for _, u := range unserved {
		all = append(all, apiclient.Attention{
			Kind: apiclient.AttentionPool, Subject: u.TaskQueue, Since: &u.Since,
			What:   fmt.Sprintf("no live collector takes jobs from %s; waiting there: %s", u.TaskQueue, bounded(u.Jobs, "job")),
			Remedy: "start a collector of this pool, or activate one: 'benchloom collector list' shows them",
		})
	}
	stuck, err := s.record.StuckRequests(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range stuck {
		all = append(all, apiclient.Attention{
			Kind: apiclient.AttentionRequest, Subject: string(r.ID), Project: r.Project, Since: &r.Since, What: stuckWords[r.Why],
			Remedy: fmt.Sprintf("'benchloom explain %s' says why, 'benchloom request unstick %s' repairs what is safe", r.ID, r.ID),
		})
	}
	projects, err := s.projects.listProjects(ctx, &none{})
	if err != nil {
		return nil, err
	}
	for _, p := range projects.Body.Projects {
		if state := p.SourceState; state != nil && state.FailingSince != nil {
			all = append(all, apiclient.Attention{
				Kind: apiclient.AttentionRepository, Subject: p.Name, Project: p.Name, Since: state.FailingSince, What: "its repository cannot be read: " + state.Message,
				Remedy: fmt.Sprintf("correct the address or the access, then 'benchloom project sync %s'", p.Name),
			})
		}
	}
	pauses, err := s.record.Pauses(ctx)
	for _, p := range pauses {
		all = append(all, apiclient.Attention{
			Kind: apiclient.AttentionPause, Subject: p.Project, Project: p.Project, Since: &p.At, What: fmt.Sprintf("paused by %s: %s", p.By, p.Reason),
			Remedy: fmt.Sprintf("'benchloom queue resume %s' resumes it", p.Project),
		})
	}
	return all, err
}

var stuckWords = map[store.StuckReason]string{
	store.StuckUnstarted:   "its workflow was never started",
	store.StuckUnannounced: "nobody has reported that its artifacts are ready",
	store.StuckBetween:     "its jobs have ended, and nothing has followed",
}

// maxExact bounds the numbers that are counted exactly.
const maxExact = 10_000

// bounded writes a number of things, up to which they were counted.
func bounded(n int, thing string) string {
	if n > maxExact {
		return "more than 10,000 " + thing + "s"
	}
	return count(n, thing)
}
