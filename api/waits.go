package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/lately"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/waittime"
)

// WaitRecord reads how long jobs wait, and how long requests take.
type WaitRecord interface {
	// Waits reads the waiting times of jobs that became able to run within window before now,
	// and of those that wait.
	Waits(ctx context.Context, window time.Duration, filter store.WaitFilter) (store.Waits, error)
	// EndToEnd sums up the requests that were completed within window before now; an empty
	// project stands for all.
	EndToEnd(ctx context.Context, window time.Duration, project string) ([]store.EndToEnd, error)
	QueueKnown(ctx context.Context, name string) (bool, error)
	// PoolKnown reports whether a pool has or had a collector lately.
	PoolKnown(ctx context.Context, name string) (bool, error)
}

// longestWindow bounds the period of waiting times.
const longestWindow = 7 * 24 * time.Hour

// waitsWanted is a period and a filter of jobs.
type waitsWanted struct {
	window time.Duration
	filter store.WaitFilter
}

type waitHandlers struct {
	*base
	record WaitRecord
	// waits keeps the waits of many jobs.
	waits *lately.Cache[waitsWanted, store.Waits]
}

func newWaitHandlers(s *base, record WaitRecord) *waitHandlers {
	read := func(ctx context.Context, wanted waitsWanted) (store.Waits, error) {
		return record.Waits(ctx, wanted.window, wanted.filter)
	}
	much := func(w store.Waits) bool {
		jobs := 0
		for _, one := range w.Samples {
			jobs += one.Jobs
		}
		return jobs >= manyJobs
	}
	return &waitHandlers{base: s, record: record, waits: keep(s, read, much)}
}

func (s *waitHandlers) register() {
	handle(s.base, operation{id: "get-wait-stats", method: http.MethodGet, path: "/stats/wait", need: toRead, tag: "queues",
		summary:     "Show how long jobs wait for a collector, by pool and queue",
		description: "From the first moment at which nothing kept a job from running to its start, in blocks of time, with the part that started within the objective of its queue. Time in which it could not run stands apart."}, s.getWaits)
}

type getWaits struct {
	Pool    string `query:"pool" maxLength:"300" doc:"Only this pool: its task queue, or its name."`
	Queue   string `query:"queue" maxLength:"300" doc:"Only this queue."`
	Project string `query:"project" maxLength:"300" doc:"Only this project."`
	Since   string `query:"since" default:"24h" maxLength:"20" doc:"Period before now: a multiple of 15m, at most 168h."`
	Block   string `query:"block" enum:"15m,2h" default:"15m" doc:"Length of the blocks."`
}

func (s *waitHandlers) getWaits(ctx context.Context, in *getWaits) (*body[apiclient.WaitStats], error) {
	window, err := time.ParseDuration(in.Since)
	if err != nil || window < waittime.ShortBlock || window > longestWindow || window%waittime.ShortBlock != 0 {
		return nil, invalid("since is %q; use a multiple of 15m from 15m to 168h, such as 24h", in.Since)
	}
	filter := store.WaitFilter{Project: in.Project, Queue: in.Queue, Pool: in.Pool}
	if err := s.known(ctx, filter); err != nil {
		return nil, err
	}
	waits, err := s.waits.Get(ctx, waitsWanted{window, filter})
	if err != nil {
		return nil, err
	}
	block := waittime.ShortBlock
	if in.Block == "2h" {
		block = waittime.LongBlock
	}
	total, places := waittime.Sum(waits.Samples, waittime.Query{From: waits.From, Block: block, Objective: waits.Objective})
	out := apiclient.WaitStats{
		From: waits.From, Until: waits.Until, BlockSeconds: block.Seconds(), StepSeconds: waittime.StepLength.Seconds(),
		Total: waitLevelOf(total), Places: make([]apiclient.WaitLevel, len(places)), EndToEnd: []apiclient.EndToEnd{},
	}
	for i, place := range places {
		out.Places[i] = waitLevelOf(place)
	}
	if in.Pool == "" && in.Queue == "" {
		took, err := s.record.EndToEnd(ctx, window, in.Project)
		if err != nil {
			return nil, err
		}
		for _, t := range took {
			out.EndToEnd = append(out.EndToEnd, apiclient.EndToEnd{
				Project: t.Project, Type: t.Type, Requests: t.Requests, Median: t.Median, Ninth: t.Ninth, Longest: t.Longest, Admission: t.Admission,
			})
		}
	}
	return answer(out, nil)
}

// known refuses unknown names, which must not look like quiet ones.
func (s *waitHandlers) known(ctx context.Context, f store.WaitFilter) error {
	if f.Project != "" {
		if _, err := s.project(ctx, f.Project, http.StatusNotFound); err != nil {
			return err
		}
	}
	if f.Queue != "" {
		known, err := s.record.QueueKnown(ctx, f.Queue)
		if err != nil {
			return err
		}
		if !known {
			return problemf(http.StatusNotFound, "unknown-queue", "there is no queue %q: it is not configured, belongs to no known account or project, and never had a job; 'benchloom queue list' lists them", f.Queue)
		}
	}
	if f.Pool != "" {
		known, err := s.record.PoolKnown(ctx, f.Pool)
		if err != nil {
			return err
		}
		if !known {
			return problemf(http.StatusNotFound, "unknown-pool", "no collector of a pool %q is registered, nor was one lately; 'benchloom collector list' lists collectors by pool", f.Pool)
		}
	}
	return nil
}

func waitLevelOf(l waittime.Level) apiclient.WaitLevel {
	out := apiclient.WaitLevel{
		Pool: l.Pool, Queue: l.Queue, Objective: l.Objective.Seconds(), WaitFigures: waitFiguresOf(l.Figures),
		Steps: l.Steps[:], Blocked: []apiclient.BlockedTime{}, Blocks: make([]apiclient.WaitBlock, len(l.Blocks)),
	}
	for _, reason := range waittime.Reasons() {
		if took, now := l.Blocked[reason], l.BlockedNow[reason]; took > 0 || now > 0 {
			out.Blocked = append(out.Blocked, apiclient.BlockedTime{Reason: reason, Seconds: took.Seconds(), Now: now})
		}
	}
	for i, b := range l.Blocks {
		out.Blocks[i] = apiclient.WaitBlock{From: b.From, WaitFigures: waitFiguresOf(b.Figures)}
	}
	return out
}

func waitFiguresOf(f waittime.Figures) apiclient.WaitFigures {
	out := apiclient.WaitFigures{Started: f.Started, Waiting: f.Waiting, Overdue: f.Overdue, Within: f.Within}
	if share, counts := f.Share(); counts {
		median, ninth, longest := f.Median.Seconds(), f.Ninth.Seconds(), f.Longest.Seconds()
		out.Share, out.Median, out.Ninth, out.Longest = &share, &median, &ninth, &longest
	}
	return out
}

// waited counts in metrics how long a job has waited for a run that begins.
func (s *base) waited(w *store.RunWait) {
	if w == nil {
		return
	}
	queue := w.Queue
	if strings.HasPrefix(queue, bench.UserQueue) {
		queue = strings.TrimSuffix(bench.UserQueue, ":") // accounts come and go, series stay
	}
	scope := s.Scope.Tagged(map[string]string{"pool": w.Pool, "queue": queue})
	scope.Timer("job_wait").Record(w.Waited)
	within := "no"
	if waittime.Rounded(w.Waited) <= w.Objective {
		within = "yes"
	}
	scope.Tagged(map[string]string{"within": within}).Counter("job_starts").Inc(1)
	for _, reason := range waittime.Reasons() {
		if took := w.Blocked[reason]; took >= time.Second {
			scope.Tagged(map[string]string{"reason": string(reason)}).Counter("job_blocked_seconds").Inc(int64(took.Seconds()))
		}
	}
}
