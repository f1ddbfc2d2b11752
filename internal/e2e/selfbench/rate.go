package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// ratePlan sets how many trivial commands run one after the other on each number of
// collectors, and the programs of an earlier state to compare with.
type ratePlan struct {
	jobs   int
	turns  int
	before livestack.Programs // none: Benchloom is empty
}

// collectorCounts lists the numbers of collectors, and of slots of the bare workflow's worker.
func collectorCounts() []int { return []int{1, 4} }

// Units of rates.
const (
	unitRate   = "jobs/sec"
	unitSlower = "of-bare-sec" // time of a command as a multiple of a bare workflow's: 1 is the rate of the engine
	unitOfJob  = "cpu-sec/job"
	unitBefore = "of-before" // CPU time of a command as a part of that in the earlier state
)

// Sides of the comparison with an earlier state.
const (
	sideNow    = "now"
	sideBefore = "before"
)

func rateName(side string, collectors int) string {
	return fmt.Sprintf("Rate/of=command/state=%s/collectors=%d", side, collectors)
}

func bareRateName(side string, slots int) string {
	return fmt.Sprintf("Rate/of=bare/state=%s/slots=%d", side, slots)
}

func rateCPUName(side, process string, collectors int) string {
	return fmt.Sprintf("RateCPU/state=%s/process=%s/collectors=%d", side, process, collectors)
}

// rateBlocks is the number of blocks in which commands and bare workflows alternate: a machine's
// speed may change within seconds.
const rateBlocks = 5

// measureRate measures the rate of trivial commands and of bare workflows on the same
// server, and the CPU time of a command. With an earlier state, the two take turns.
func measureRate(ctx context.Context, o options, plan ratePlan, report *report, progress func(string, ...any)) error {
	sides := []struct {
		name     string
		programs livestack.Programs
	}{{sideNow, o.programs()}}
	if plan.before.Benchloom != "" {
		sides = append(sides, sides[0])
		sides[0].name, sides[0].programs = sideBefore, plan.before
	}
	for _, collectors := range collectorCounts() {
		cost := make(map[string][]float64)
		for turn := range plan.turns {
			for _, side := range sides {
				r, err := rateOf(ctx, side.programs, collectors, plan.jobs)
				if err != nil {
					return fmt.Errorf("the rate of %s commands with %d collectors: %w", side.name, collectors, err)
				}
				progress("%s, turn %d of %d, %d collectors: %.1f commands and %.1f bare workflows a second, %.1f ms of CPU time a command",
					side.name, turn+1, plan.turns, collectors, r.commands, r.bare, 1000*r.all())
				if err := r.report(side.name, collectors, report); err != nil {
					return err
				}
				cost[side.name] = append(cost[side.name], r.all())
			}
		}
		if before := cost[sideBefore]; len(before) > 0 {
			if err := report.add(figure{fmt.Sprintf("RateCPU/compared=before/collectors=%d", collectors), plan.turns, []benchfmt.Value{
				{Value: rounded(median(cost[sideNow])/median(before), 3), Unit: unitBefore},
			}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rates are the figures of one stack.
type rates struct {
	jobs           int
	commands, bare float64            // a second
	cpu            map[string]float64 // seconds a command, by process
	bareCPU        float64            // of Temporal, seconds a bare workflow
}

func (r rates) all() (total float64) {
	for _, cpu := range r.cpu {
		total += cpu
	}
	return total
}

func (r rates) report(side string, collectors int, report *report) error {
	figures := []figure{
		{rateName(side, collectors), r.jobs, []benchfmt.Value{
			{Value: rounded(r.commands, 2), Unit: unitRate}, {Value: rounded(r.bare/r.commands, 3), Unit: unitSlower}, {Value: rounded(r.all(), 5), Unit: unitOfJob},
		}},
		{bareRateName(side, collectors), r.jobs, []benchfmt.Value{{Value: rounded(r.bare, 2), Unit: unitRate}, {Value: rounded(r.bareCPU, 5), Unit: unitOfJob}}},
	}
	for process, cpu := range r.cpu {
		figures = append(figures, figure{rateCPUName(side, process, collectors), r.jobs, []benchfmt.Value{{Value: rounded(cpu, 5), Unit: unitOfJob}}})
	}
	slices.SortStableFunc(figures[2:], func(a, b figure) int { return strings.Compare(a.name, b.name) })
	for _, f := range figures {
		if err := report.add(f); err != nil {
			return err
		}
	}
	return nil
}

// rateOf measures a fresh stack, once it is warm.
func rateOf(ctx context.Context, programs livestack.Programs, collectors, jobs int) (r rates, err error) {
	s, err := livestack.Start(ctx, programs, "--collectors", fmt.Sprintf("%dx1", collectors), "--share-cores")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	record, err := pgx.Connect(ctx, s.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return r, fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	temporal, err := s.Temporal(ctx)
	if err != nil {
		return r, fmt.Errorf("connecting to the stack's Temporal: %w", err)
	}
	defer temporal.Close()
	bare, err := startBareSlots(temporal, collectors)
	if err != nil {
		return r, err
	}
	defer bare.stop()
	m := rating{stack: s, record: record, bare: bare, slots: collectors}
	const warm = 40
	if _, err := m.commands(ctx, warm); err != nil {
		return r, err
	}
	if _, err := m.workflows(ctx, warm); err != nil {
		return r, err
	}
	pids, err := s.Processes()
	if err != nil {
		return r, err
	}
	r = rates{jobs: jobs, cpu: make(map[string]float64)}
	var commands, workflows time.Duration
	for range rateBlocks {
		before, err := usageNow(pids)
		if err != nil {
			return r, err
		}
		took, err := m.commands(ctx, jobs/rateBlocks)
		if err != nil {
			return r, err
		}
		commands += took
		between, err := usageNow(pids)
		if err != nil {
			return r, err
		}
		if took, err = m.workflows(ctx, jobs/rateBlocks); err != nil {
			return r, err
		}
		workflows += took
		after, err := usageNow(pids)
		if err != nil {
			return r, err
		}
		for name := range pids {
			kind, _, _ := strings.Cut(name, "-")
			r.cpu[kind] += (between[name].cpu - before[name].cpu).Seconds() / float64(jobs)
		}
		r.bareCPU += (after["temporal"].cpu - between["temporal"].cpu).Seconds() / float64(jobs)
	}
	r.commands, r.bare = float64(jobs)/commands.Seconds(), float64(jobs)/workflows.Seconds()
	return r, nil
}

// rating runs commands and bare workflows on a stack.
type rating struct {
	stack  *livestack.Stack
	record *pgx.Conn
	bare   *bareWorker
	slots  int
	ran    int // bare workflows
}

// commands runs a batch of trivial commands, see [rating.completed].
func (m *rating) commands(ctx context.Context, n int) (time.Duration, error) {
	jobs := make([]apiclient.NewJob, n)
	for i := range jobs {
		jobs[i].Argv = []string{"true"}
	}
	r, err := m.stack.API.CreateBatch(ctx, apiclient.NewRequest{}, slices.Values(jobs))
	if err != nil {
		return 0, fmt.Errorf("submitting %d commands: %w", n, err)
	}
	return m.completed(ctx, r.ID, n)
}

// completed waits for the end of a request for trivial commands. It returns the time from the
// start of the first to the end of the last, by the record.
func (m *rating) completed(ctx context.Context, id bench.RequestID, n int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, graphBound)
	defer cancel()
	for {
		var open bool
		if err := m.record.QueryRow(ctx, `select status <> $2 from benchmark_request where id = $1`, id, string(bench.Completed)).Scan(&open); err != nil {
			return 0, fmt.Errorf("reading request %s: %w", id, err)
		}
		if !open {
			break
		}
		if err := sleep(ctx, lookSoon); err != nil {
			return 0, fmt.Errorf("waiting for the end of %d commands: %w", n, err)
		}
	}
	var took float64
	var succeeded int
	if err := m.record.QueryRow(ctx, `
		select extract(epoch from max(n.finished_at) - min(n.started_at))::float8, count(*) filter (where n.outcome = 'success')
		from job_run n join request_job rj on rj.job_id = n.job_id where rj.request_id = $1`, id).Scan(&took, &succeeded); err != nil {
		return 0, fmt.Errorf("reading the runs of request %s: %w", id, err)
	}
	if succeeded != n {
		return 0, fmt.Errorf("%d of %d commands of request %s succeeded", succeeded, n, id)
	}
	return time.Duration(took * float64(time.Second)), nil
}

// workflows runs bare workflows, as many at once as the hand-out gives to Temporal for as
// many collectors.
func (m *rating) workflows(ctx context.Context, n int) (time.Duration, error) {
	first := m.ran
	m.ran += n
	begun := time.Now()
	next := make(chan int, n)
	for i := range n {
		next <- first + i
	}
	close(next)
	failures := make(chan error, 2*m.slots+2)
	var running sync.WaitGroup
	for range 2*m.slots + 2 {
		running.Go(func() {
			for i := range next {
				if _, err := m.bare.run(ctx, i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	running.Wait()
	took := time.Since(begun)
	close(failures)
	return took, <-failures
}
