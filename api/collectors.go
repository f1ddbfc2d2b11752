package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// CollectorRecord stores collectors. A method that takes an epoch returns
// store.ErrFenced when the collector was registered again or removed since.
type CollectorRecord interface {
	// RegisterCollector returns store.ErrNameTaken when another live machine has the name.
	RegisterCollector(ctx context.Context, c bench.Collector, offlineAfter time.Duration) (bench.Collector, error)
	// Heartbeat records a sign of life with the collector's current run; empty: none.
	Heartbeat(ctx context.Context, name string, epoch int64, run bench.RunID, progress json.RawMessage) (bench.Collector, error)
	// SetStuck records why a collector can run nothing more; empty: it can.
	SetStuck(ctx context.Context, name string, epoch int64, why string) (bench.Collector, error)
	// Reconsider lets a collector that was set aside take jobs again when its machine is
	// quiet; quiet is its report, nil: none.
	Reconsider(ctx context.Context, name string, epoch int64, quiet *bool, offlineAfter time.Duration) (bench.Collector, error)
	SetCacheDirs(ctx context.Context, name string, epoch int64, dirs []string) error
	// CollectorTaskQueues lists the task queues for a collector to serve.
	CollectorTaskQueues(ctx context.Context, c bench.Collector) ([]string, error)
	// JobsWaiting counts the jobs at each task queue that no collector has begun.
	JobsWaiting(ctx context.Context, taskQueues []string) (int, error)
	// HasOpenJobs reports whether a job waits or runs at one of the task queues.
	HasOpenJobs(ctx context.Context, taskQueues []string) (bool, error)
	// QueueWaits returns the wait of the oldest handed-out job of each task queue, in
	// seconds. Task queues without such a job are left out.
	QueueWaits(ctx context.Context, taskQueues []string) (map[string]float64, error)
	// Run returns store.ErrNotFound for a run that has not passed the fence.
	Run(ctx context.Context, id bench.RunID) (bench.Run, error)
	Collectors(ctx context.Context) ([]bench.Collector, error)
	// LastCanaries lists the newest canary of each collector that has had one.
	LastCanaries(ctx context.Context) ([]bench.Canary, error)
	SetActive(ctx context.Context, name string, active bool) error
	// RemoveCollector returns store.ErrNotFound for a collector that is neither
	// registered, enrolled nor invited.
	RemoveCollector(ctx context.Context, name string) error
	UseRecord
}

type collectorHandlers struct {
	*base
	record    CollectorRecord
	enrolment *enrolmentHandlers
	announcer *announcer
}

func (s *collectorHandlers) register() {
	s.registerUse()
	handle(s.base, operation{id: "list-collectors", method: http.MethodGet, path: "/collectors", need: toRead, tag: "collectors",
		summary: "List collectors"}, s.listCollectors)
	handle(s.base, operation{id: "get-collector", method: http.MethodGet, path: "/collectors/{collector}", need: toRead, tag: "collectors",
		summary: "Show a collector"}, s.getCollector)
	handle(s.base, operation{id: "drain-collector", method: http.MethodPost, path: "/collectors/{collector}/drain", need: toAdmin, audit: "collector drain", tag: "collectors",
		summary: "Drain a collector: it finishes its job and takes no other"}, s.drainCollector)
	handle(s.base, operation{id: "activate-collector", method: http.MethodPost, path: "/collectors/{collector}/activate", need: toAdmin, audit: "collector activate", tag: "collectors",
		summary: "Activate a drained collector"}, s.activateCollector)
	handle(s.base, operation{id: "remove-collector", method: http.MethodDelete, path: "/collectors/{collector}", need: toAdmin, audit: "collector remove", tag: "collectors", status: http.StatusNoContent,
		summary: "Remove an offline collector", description: "Its configuration and its token are removed as well. With force it may be live; its process is refused from then on."}, s.removeCollector)
	handle(s.base, operation{id: "register-collector", method: http.MethodPost, path: "/collectors/register", need: toCollect, owns: []ownership{ownBody}, tag: "collectors", maxBody: factsBody,
		summary: "Register a collector", description: "Each registration has a new epoch, which fences off earlier ones. Answers 409 with the type urn:benchloom:name-taken when another live machine has the name, or wrong-machine when its architecture is not the target's, or new-machine when its hardware is not the collector's; 403 with not-configured when nobody has invited it, or not-yours when the token is another collector's."}, s.registerCollector)
	handle(s.base, operation{id: "heartbeat", method: http.MethodPost, path: "/collectors/{collector}/heartbeat", need: toCollect, owns: []ownership{ownName, ownBody}, tag: "collectors", maxBody: factsBody,
		summary: "Send a collector's heartbeat", description: "Answers 409 with the type urn:benchloom:fenced when the collector was registered again since."}, s.heartbeat)
}

type collectorPath struct {
	Collector string `path:"collector" doc:"Name of the collector."`
}

// collector reads one collector. The problem of an unknown one lists the known ones.
func (s *collectorHandlers) collector(ctx context.Context, name string) (bench.Collector, error) {
	all, err := s.record.Collectors(ctx)
	if err != nil {
		return bench.Collector{}, err
	}
	names := make([]string, len(all))
	for i, c := range all {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	slices.Sort(names)
	registered := "none is registered; start one with 'benchloom collector'"
	if len(names) > 0 {
		registered = "registered are " + strings.Join(names, ", ") + "; name one of these, or start it with 'benchloom collector'"
	}
	return bench.Collector{}, problemf(http.StatusNotFound, "unknown-collector", "there is no collector %.80q; %s", name, registered)
}

func (s *collectorHandlers) listCollectors(ctx context.Context, in *listCollectors) (*body[apiclient.CollectorList], error) {
	all, err := s.record.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	list := apiclient.CollectorList{Collectors: make([]apiclient.Collector, 0, len(all))}
	for _, c := range all {
		out, err := collectorOf(c, s.Now(), s.OfflineAfter)
		if err != nil {
			return nil, err
		}
		list.Collectors = append(list.Collectors, out)
	}
	if err := s.addUse(ctx, list.Collectors, in.Use); err != nil {
		return nil, err
	}
	return answer(list, s.addCanaries(ctx, list.Collectors))
}

func (s *collectorHandlers) getCollector(ctx context.Context, in *collectorPath) (*body[apiclient.Collector], error) {
	c, err := s.collector(ctx, in.Collector)
	if err != nil {
		return nil, err
	}
	out, err := collectorOf(c, s.Now(), s.OfflineAfter)
	if err != nil {
		return nil, err
	}
	one := []apiclient.Collector{out}
	if err := s.addUse(ctx, one, true); err != nil {
		return nil, err
	}
	err = s.addCanaries(ctx, one)
	return answer(one[0], err)
}

// addCanaries fills in the last canaries of collectors.
func (s *collectorHandlers) addCanaries(ctx context.Context, collectors []apiclient.Collector) error {
	last, err := s.record.LastCanaries(ctx)
	if err != nil {
		return err
	}
	for i, c := range collectors {
		at := slices.IndexFunc(last, func(k bench.Canary) bool { return k.Collector == c.Name })
		if at < 0 {
			continue
		}
		k := last[at]
		collectors[i].LastCanary = &apiclient.Canary{Request: k.Request, Outcome: k.Outcome, Message: k.Message, CreatedAt: k.CreatedAt, EndedAt: k.EndedAt}
	}
	return nil
}

// actOnCollector names a collector, with the reason for the action.
type actOnCollector struct {
	Collector string `path:"collector" doc:"Name of the collector."`
	Body      *apiclient.Reason
}

func (s *collectorHandlers) drainCollector(ctx context.Context, in *actOnCollector) (*body[apiclient.Collector], error) {
	return s.setActive(ctx, in, false)
}

func (s *collectorHandlers) activateCollector(ctx context.Context, in *actOnCollector) (*body[apiclient.Collector], error) {
	return s.setActive(ctx, in, true)
}

func (s *collectorHandlers) setActive(ctx context.Context, in *actOnCollector, active bool) (*body[apiclient.Collector], error) {
	if _, err := s.collector(ctx, in.Collector); err != nil {
		return nil, err
	}
	if err := s.record.SetActive(ctx, in.Collector, active); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "collector changed", "collector", in.Collector, "active", active, "by", caller(ctx).Owner)
	return s.getCollector(ctx, &collectorPath{Collector: in.Collector})
}

type removeCollector struct {
	Collector string `path:"collector" doc:"Name of the collector."`
	Force     bool   `query:"force" doc:"Also remove a live collector."`
}

func (s *collectorHandlers) removeCollector(ctx context.Context, in *removeCollector) (*none, error) {
	name := in.Collector
	c, unknown := s.collector(ctx, name)
	if _, ok := errors.AsType[*huma.ErrorModel](unknown); unknown != nil && !ok {
		return nil, unknown
	}
	if state := c.State(s.Now(), s.OfflineAfter); unknown == nil && state != bench.CollectorOffline && !in.Force {
		return nil, problemf(http.StatusConflict, "live-collector", "collector %s is %s: only one that is offline is removed; drain it and stop its process, it counts as offline after %s; or add --force, then its run is lost", name, state, s.OfflineAfter)
	}
	// One that was invited or enrolled, but never registered, is removed as well.
	err := s.record.RemoveCollector(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		err = unknown
	}
	if err != nil {
		return nil, err
	}
	s.tokens.forget(name)
	s.Log.InfoContext(ctx, "collector removed", "collector", name, "force", in.Force, "by", caller(ctx).Owner)
	return nil, nil
}

type registerCollector struct {
	Body apiclient.Registration
}

func (in *registerCollector) work() work { return work{collector: in.Body.Name} }

func (s *collectorHandlers) registerCollector(ctx context.Context, in *registerCollector) (*body[apiclient.Registered], error) {
	r := in.Body
	if err := bench.CheckName("collector", r.Name); err != nil {
		return nil, err
	}
	if err := s.enrolment.configured(ctx, &r); err != nil {
		return nil, err
	}
	pool, err := bench.NewPool(r.Target, r.SizeClass, r.Pool)
	if err != nil {
		return nil, fmt.Errorf("collector %s: %w", r.Name, err)
	}
	if err := sameArchitecture(r.Name, r.Target, r.Host); err != nil {
		return nil, err
	}
	if r.Version == "" || r.HardwareID == "" {
		return nil, invalid("collector %s: its version and hardware_id must not be empty: results are compared by them", r.Name)
	}
	if r.SharedHost != "" {
		if err := bench.CheckName("shared host", r.SharedHost); err != nil {
			return nil, err
		}
	}
	if err := checkCacheDirs(r.CacheDirs); err != nil {
		return nil, err
	}
	unenforced, err := json.Marshal(notNil(r.Unenforced))
	if err != nil {
		return nil, fmt.Errorf("encoding the limits of collector %s: %w", r.Name, err)
	}
	known, err := s.record.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := s.record.RegisterCollector(ctx, bench.Collector{
		Name: r.Name, Target: r.Target, SizeClass: r.SizeClass, Pool: r.Pool, MachineID: r.MachineID, Version: r.Version,
		HardwareID: r.HardwareID, Facts: r.Facts, Unenforced: unenforced, CoLocated: r.CoLocated,
		Labels: r.Labels, BenchmarkSets: r.BenchmarkSets,
		MachineType: r.MachineType, MachineGroup: r.MachineGroup, Devices: r.Devices, MemoryBytes: r.MemoryBytes, CPUs: r.CPUs,
		CacheDirs: r.CacheDirs, Host: r.SharedHost,
	}, s.OfflineAfter)
	other, isNew := errors.AsType[*store.NewMachineError](err)
	switch {
	case errors.Is(err, store.ErrNameTaken):
		return nil, s.nameTaken(r.Name)
	case isNew:
		return nil, s.newMachine(ctx, cmp.Or(r.SharedHost, r.Name), other)
	case err != nil:
		return nil, err
	}
	var before *bench.Collector
	if i := slices.IndexFunc(known, func(c bench.Collector) bool { return c.Name == stored.Name }); i >= 0 {
		before = &known[i]
	}
	s.refit(ctx, func(ctx context.Context) ([]string, error) { return s.dispatcher.RefitFor(ctx, before, stored) })
	queues, err := s.record.CollectorTaskQueues(ctx, stored)
	if err != nil {
		return nil, err
	}
	out, err := collectorOf(stored, s.Now(), s.OfflineAfter)
	return answer(apiclient.Registered{Collector: out, TaskQueue: pool.TaskQueue(), TaskQueues: queues, HeartbeatSeconds: max(1, int(s.HeartbeatEvery.Seconds())), TemporalToken: s.TemporalTokens}, err)
}

// newMachine returns the problem of a machine with other hardware than the collector of its
// name. owner is the owner of its token: the collector, or its shared host.
func (s *collectorHandlers) newMachine(ctx context.Context, owner string, e *store.NewMachineError) error {
	remedy := fmt.Sprintf("'benchloom collector remove %s', then start it again", e.Name)
	switch _, err := s.enrolment.record.Invitation(ctx, owner); {
	case err == nil:
		remedy = fmt.Sprintf("'benchloom collector invite %s --replace', then 'benchloom collector enroll' on this machine", owner)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	return conflict(apiclient.ProblemNewMachine, fmt.Errorf("%w: a machine with another CPU model, number of CPUs, amount of memory or virtualisation is a new machine, also if it is the same virtual one, as its results do not compare with the earlier ones; choose another name, or give it this one with %s", e, remedy))
}

type heartbeat struct {
	Collector string `path:"collector" doc:"Name of the collector."`
	Body      apiclient.Heartbeat
}

func (in *heartbeat) work() work { return work{run: in.Body.Run} }

func (s *collectorHandlers) heartbeat(ctx context.Context, in *heartbeat) (*body[apiclient.HeartbeatAnswer], error) {
	if in.Body.Run != "" {
		if _, err := bench.ParseRunID(string(in.Body.Run)); err != nil {
			return nil, err
		}
	}
	progress, err := progressText(in.Body.Progress)
	if err != nil {
		return nil, err
	}
	c, err := s.record.Heartbeat(ctx, in.Collector, in.Body.Epoch, in.Body.Run, progress)
	if err != nil {
		return nil, err
	}
	if in.Body.Stuck != "" && !c.Stuck && (c.Active || c.SetAsideAt != nil) {
		if c, err = s.setStuck(ctx, c, in.Body.Stuck); err != nil {
			return nil, err
		}
	}
	if c.SetAsideAt != nil && !c.Stuck {
		if c, err = s.reconsider(ctx, c, in.Body.Disturbed); err != nil {
			return nil, err
		}
	}
	if dirs := in.Body.CacheDirs; dirs != nil {
		if err := checkCacheDirs(*dirs); err != nil {
			return nil, err
		}
		if err := s.record.SetCacheDirs(ctx, in.Collector, in.Body.Epoch, *dirs); err != nil {
			return nil, err
		}
	}
	queues, err := s.record.CollectorTaskQueues(ctx, c)
	if err != nil {
		return nil, err
	}
	active := c.Active
	if c.SetAsideAt != nil && !c.Stuck { // for its canary alone, if one waits
		if active, err = s.record.HasOpenJobs(ctx, queues); err != nil {
			return nil, err
		}
	}
	closed, err := s.closed(ctx, in.Collector, in.Body.Run)
	if err != nil {
		return nil, err
	}
	out := apiclient.HeartbeatAnswer{RunClosed: closed, Active: active, SetAside: c.SetAsideAt != nil && !c.Stuck, WantedVersion: c.WantedVersion, TaskQueues: queues, Now: s.Now()}
	if in.Body.CountWaiting {
		waiting, err := s.record.JobsWaiting(ctx, queues)
		if err != nil {
			return nil, err
		}
		out.Waiting = &waiting
	}
	if in.Body.AskWaits {
		if out.Waits, err = s.record.QueueWaits(ctx, queues); err != nil {
			return nil, err
		}
	}
	return answer(out, nil)
}

// closed says how a collector's run has ended in the record; empty: it has not, or has not
// passed the fence yet.
func (s *collectorHandlers) closed(ctx context.Context, collector string, id bench.RunID) (string, error) {
	if id == "" {
		return "", nil
	}
	run, err := s.record.Run(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case run.Collector != collector:
		return "", nil
	case run.Open():
		s.announcer.goesOn(ctx, run)
		return "", nil
	}
	return strings.TrimSuffix(fmt.Sprintf("it ended as %s: %s", run.Outcome, run.Message), ": "), nil
}

// setStuck records that a collector can measure nothing until it is started anew.
func (s *collectorHandlers) setStuck(ctx context.Context, c bench.Collector, why string) (bench.Collector, error) {
	now, err := s.record.SetStuck(ctx, c.Name, c.Epoch, why)
	if err == nil {
		s.Log.ErrorContext(ctx, "collector set aside until it is started anew", "collector", c.Name, "reason", why)
	}
	return now, err
}

// reconsider decides whether a collector that was set aside takes jobs again.
func (s *collectorHandlers) reconsider(ctx context.Context, c bench.Collector, disturbed *string) (bench.Collector, error) {
	var quiet *bool
	if disturbed != nil {
		is := *disturbed == ""
		quiet = &is
	}
	now, err := s.record.Reconsider(ctx, c.Name, c.Epoch, quiet, s.OfflineAfter)
	if err == nil && now.Active {
		s.Log.InfoContext(ctx, "collector that was set aside takes jobs again", "collector", c.Name, "still_disturbed_by", now.DisturbedBy)
	}
	return now, err
}

func checkCacheDirs(dirs []string) error {
	for _, d := range dirs {
		if err := bench.CheckCacheDir(d); err != nil {
			return err
		}
	}
	return nil
}
