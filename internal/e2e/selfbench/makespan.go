package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
)

// The makespan of requests on a pool of equal collectors, one of which is killed
// halfway, is compared with what the surviving collectors could have achieved.
const (
	poolCollectors = 3
	poolName       = "makespan"
	// A request has a job for each backend and profile: twenty. With more requests, the
	// idle time at the end of each, inherent to one slot, would dominate.
	makespanRequests = 2
	makespanBackends = 2
	makespanProfiles = 10
	makespanJobs     = makespanRequests * makespanBackends * makespanProfiles
	// Lengths of jobs are distributed evenly from one unit to this number of units.
	longestJob = 10
	// The heartbeat timeout, after which a dead collector is noticed.
	detection = 15 * time.Second
	// The factor allowed for scheduling.
	makespanSlack = 1.25
	makespanBound = 10 * time.Minute
)

// slotCounts returns the values of max_in_progress to measure.
func slotCounts() []int { return []int{1, 2} }

func makespanName(slots int) string { return fmt.Sprintf("Makespan/slots=%d", slots) }
func gapName() string               { return "Gap/between=requests" }

// lengths returns the lengths of a run's jobs, request by request.
func lengths(random *rand.Rand, unit time.Duration) []time.Duration {
	all := make([]time.Duration, makespanJobs)
	for i := range all {
		all[i] = unit + time.Duration(random.Float64()*float64((longestJob-1)*unit))
	}
	return all
}

// atBest returns the time at which equal collectors complete the work without
// loss if one of them dies at lostAt: their lifetimes then add up to the work.
func atBest(work time.Duration, collectors int, lostAt time.Duration) time.Duration {
	if before := time.Duration(collectors) * lostAt; before < work {
		return lostAt + (work-before)/time.Duration(collectors-1)
	}
	return work / time.Duration(collectors)
}

// allowed returns the time a run may take.
func allowed(jobs []time.Duration, lostAt time.Duration) time.Duration {
	return time.Duration(makespanSlack*float64(atBest(sum(jobs), poolCollectors, lostAt))) + detection + slices.Max(jobs)
}

func sum(durations []time.Duration) (total time.Duration) {
	for _, d := range durations {
		total += d
	}
	return total
}

// makespanPlan sets the number of measurements.
type makespanPlan struct {
	seeds int
	unit  time.Duration
}

// measureMakespan runs every seed with every number of slots on one stack.
func measureMakespan(ctx context.Context, o options, plan makespanPlan, report *report, progress func(string, ...any)) (err error) {
	s, err := livestack.Start(ctx, o.programs(), "--collectors", "1x1", "--share-cores")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	m := &makespan{stack: s, unit: plan.unit, dir: filepath.Join(s.Dir, "makespan")}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	pool := &collectorPool{stack: s, program: o.program, dir: m.dir}
	defer func() { err = errors.Join(err, pool.stop()) }()
	if err := pool.accounts(ctx); err != nil {
		return err
	}
	var gaps []time.Duration
	for _, slots := range slotCounts() {
		var spans, shares []float64
		for seed := range plan.seeds {
			if err := pool.start(ctx); err != nil {
				return err
			}
			r, err := m.run(ctx, slots, seed, pool)
			if err != nil {
				return fmt.Errorf("makespan with %d slots, seed %d: %w", slots, seed, err)
			}
			progress("makespan, %d slots, seed %d: %s of %s allowed, gaps %v", slots, seed, r.span.Round(time.Millisecond), r.allowed.Round(time.Millisecond), r.gaps)
			spans, shares = append(spans, r.span.Seconds()), append(shares, r.span.Seconds()/r.allowed.Seconds())
			if slots == 1 { // with more, the next request has already started
				gaps = append(gaps, r.gaps...)
			}
		}
		if err := report.add(figure{makespanName(slots), plan.seeds, []benchfmt.Value{
			{Value: rounded(median(spans), 3), Unit: unitP50}, {Value: rounded(percentile(spans, 90), 3), Unit: unitP90},
			{Value: rounded(percentile(shares, 90), 3), Unit: unitShare},
		}}); err != nil {
			return err
		}
	}
	return report.addDurations(gapName(), gaps)
}

// makespan is shared by the runs: a suite of jobs that sleep, and the directory of its
// artifacts, which hold the durations.
type makespan struct {
	stack *livestack.Stack
	dir   string
	unit  time.Duration
}

const makespanSuite = `name: makespan
description: jobs that sleep for as long as their artifact says
artifact: {provider: directory, parameters: {path: "%s/{tag}"}}
iterations: 1
backends: {%s}
profiles: {%s}
procedures:
  compiletime:
    scenarios:
      full: {measure: {run: [sh, -c, 'sleep "$$(cat "$$0")"', "${artifact}/${backend}-${profile}"]}}
benchmarks:
  - {name: sleep, kind: compiletime}
`

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = prefix + strconv.Itoa(i)
	}
	return all
}

func (m *makespan) project(slots int) string { return fmt.Sprintf("slots-%d", slots) }

// prepare applies a project for each number of slots.
func (m *makespan) prepare(ctx context.Context) error {
	suiteDir := filepath.Join(m.dir, "suite")
	if err := os.MkdirAll(suiteDir, 0o755); err != nil {
		return fmt.Errorf("making the suite: %w", err)
	}
	list := func(names []string) string { return strings.Join(names, ": {}, ") + ": {}" }
	text := fmt.Sprintf(makespanSuite, m.artifacts(), list(names("b", makespanBackends)), list(names("p", makespanProfiles)))
	if err := os.WriteFile(filepath.Join(suiteDir, suite.FileName), []byte(text), 0o644); err != nil {
		return fmt.Errorf("making the suite: %w", err)
	}
	var projects []apiclient.Project
	for _, slots := range slotCounts() {
		// Nothing is measured again: the lengths of the jobs differ from request to request.
		config := bench.ProjectConfig{Queue: bench.QueuePolicy{MaxInProgress: bench.SlotCount(slots)}, Verify: bench.VerifyOff}
		projects = append(projects, apiclient.Project{Name: m.project(slots), Config: config})
	}
	if err := applySuite(ctx, m.stack.API, suiteDir, projects...); err != nil {
		return err
	}
	// The stack's own collector does not belong to the pool.
	if _, err := m.stack.API.DrainCollector(ctx, "local-1", ""); err != nil {
		return fmt.Errorf("draining the stack's collector: %w", err)
	}
	return nil
}

func (m *makespan) artifacts() string { return filepath.Join(m.dir, "artifacts") }

// artifact writes the durations of a request's jobs.
func (m *makespan) artifact(tag string, jobs []time.Duration) error {
	dir := filepath.Join(m.artifacts(), tag)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making artifact %s: %w", tag, err)
	}
	i := 0
	for _, backend := range names("b", makespanBackends) {
		for _, profile := range names("p", makespanProfiles) {
			text := strconv.FormatFloat(jobs[i].Seconds(), 'f', 6, 64)
			if err := os.WriteFile(filepath.Join(dir, backend+"-"+profile), []byte(text), 0o644); err != nil {
				return fmt.Errorf("making artifact %s: %w", tag, err)
			}
			i++
		}
	}
	return nil
}

// makespanResult holds the durations of one run.
type makespanResult struct {
	span, allowed time.Duration
	// gaps lie between the end of a request's last job and the start of the next
	// request's first job.
	gaps []time.Duration
}

// run submits a seed's requests, kills a collector halfway, and waits for the last
// request. Times are the record's.
func (m *makespan) run(ctx context.Context, slots, seed int, pool *collectorPool) (makespanResult, error) {
	ctx, cancel := context.WithTimeout(ctx, makespanBound)
	defer cancel()
	random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // a simulation, and it has to be repeatable
	jobs := lengths(random, m.unit)
	perRequest := len(jobs) / makespanRequests
	lostAt := sum(jobs) / poolCollectors / 2
	victim := random.IntN(poolCollectors)
	var tags []string
	for n := range makespanRequests {
		tag := fmt.Sprintf("%d.%d.%d", m.unit.Milliseconds(), seed, n)
		if err := m.artifact(tag, jobs[n*perRequest:(n+1)*perRequest]); err != nil {
			return makespanResult{}, err
		}
		tags = append(tags, tag)
	}
	begin := time.Now()
	kill := time.AfterFunc(lostAt, func() { pool.kill(victim) })
	defer kill.Stop()
	var ids []bench.RequestID
	for _, tag := range tags {
		r, err := m.stack.API.CreateRequest(ctx, apiclient.NewRequest{Project: m.project(slots), Type: bench.Release, Tag: tag})
		if err != nil {
			return makespanResult{}, fmt.Errorf("submitting %s: %w", tag, err)
		}
		ids = append(ids, r.ID)
	}
	result := makespanResult{allowed: allowed(jobs, lostAt)}
	var ended time.Time // the end of the previous request's last job
	for i, id := range ids {
		detail, err := m.await(ctx, id)
		if err != nil {
			return makespanResult{}, err
		}
		first, last := extent(detail.Runs)
		if i > 0 {
			result.gaps = append(result.gaps, first.Sub(ended))
		}
		ended = lastEnd(detail.Jobs)
		result.span = max(result.span, last.Sub(begin))
	}
	return result, nil
}

// lookEvery is the interval between two looks at a request. It is long because looking
// takes CPU time from the jobs.
const lookEvery = 500 * time.Millisecond

func (m *makespan) await(ctx context.Context, id bench.RequestID) (apiclient.RequestDetail, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		detail, err := m.stack.API.Request(ctx, string(id))
		switch {
		case err != nil:
			return detail, fmt.Errorf("reading request %s: %w", id, err)
		case detail.Outcome == bench.Success:
			return detail, nil
		case detail.Status == bench.Completed:
			return detail, fmt.Errorf("request %s ended as %s: %s", id, detail.Outcome, detail.Message)
		}
		select {
		case <-ctx.Done():
			return detail, fmt.Errorf("waiting for request %s: %w", id, ctx.Err())
		case <-tick.C:
		}
	}
}

// lastEnd returns the end of the last job. Its run may have ended long before, if the
// collector was killed before it could say so to Temporal.
func lastEnd(jobs []apiclient.Job) (last time.Time) {
	for _, j := range jobs {
		if j.EndedAt != nil && j.EndedAt.After(last) {
			last = *j.EndedAt
		}
	}
	return last
}

// extent returns the start of the first run and the end of the last one.
func extent(runs []apiclient.Run) (first, last time.Time) {
	for _, r := range runs {
		if first.IsZero() || r.StartedAt.Before(first) {
			first = r.StartedAt
		}
		if r.FinishedAt != nil && r.FinishedAt.After(last) {
			last = *r.FinishedAt
		}
	}
	return first, last
}
