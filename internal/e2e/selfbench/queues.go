package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// The behaviour of queues with very many waiting jobs.
const (
	// fewWaiting is the backlog whose gaps are the reference for larger backlogs.
	fewWaiting  = 10
	muchWaiting = 10_000
	mostWaiting = 100_000
	gapsPerFile = 20 // while at least fewWaiting jobs wait, but not many more
	lookSoon    = 100 * time.Millisecond
	// queuesBound is a generous bound for one step.
	queuesBound = 10 * time.Minute
)

func waitingGapName(waiting int) string { return fmt.Sprintf("Gap/between=jobs/waiting=%d", waiting) }
func overtakenName(waiting int) string  { return fmt.Sprintf("Overtaken/waiting=%d", waiting) }
func acceptName(jobs int) string        { return fmt.Sprintf("Accept/by=file/jobs=%d", jobs) }
func twoOfEachName() string {
	return "TwoOfEach/from=" + fromPost + "/to=" + toFence
}
func growthName(process string, waiting int) string {
	return fmt.Sprintf("Growth/process=%s/waiting=%d", process, waiting)
}

// toFence is the start of the transaction that opens the run, by Postgres's clock.
const toFence = "fence"

// queuesPlan sets the number of waiting jobs.
type queuesPlan struct {
	much  int // jobs in the file whose acceptance has a limit
	most  int // the largest backlog
	gaps  int // number measured with each backlog
	pairs int // submissions to each of two APIs, and by another account beside many jobs
}

// measureQueues fills a queue of a stack with one collector.
func measureQueues(ctx context.Context, o options, plan queuesPlan, report *report, progress func(string, ...any)) (err error) {
	s, err := livestack.Start(ctx, o.programs())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	record, err := pgx.Connect(ctx, s.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	q := &queues{stack: s, program: o.program, record: record, report: report, progress: progress}
	for _, step := range []func(context.Context, queuesPlan) error{q.twoOfEach, q.few, q.many, q.most} {
		if err := step(ctx, plan); err != nil {
			return err
		}
	}
	return nil
}

type queues struct {
	stack    *livestack.Stack
	program  string
	record   *pgx.Conn
	report   *report
	progress func(string, ...any)
	fewGap   time.Duration // median
}

// twoOfEach submits jobs to two APIs alternately, with two orchestrators and an idle
// collector.
func (q *queues) twoOfEach(ctx context.Context, plan queuesPlan) (err error) {
	others, err := startOthers(ctx, q.stack, q.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.stop()) }()
	temporal, err := q.stack.Temporal(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the stack's Temporal: %w", err)
	}
	defer temporal.Close()
	var took []time.Duration
	for n := range 2 * plan.pairs {
		one, err := submit(ctx, []*apiclient.Client{q.stack.API, others.api}[n%2], temporal, newRequest(ofCommand, n))
		if err != nil {
			return err
		}
		var started time.Time
		if err := q.record.QueryRow(ctx, `
			select n.started_at from job_run n join request_job rj on rj.job_id = n.job_id where rj.request_id = $1`, one.request).Scan(&started); err != nil {
			return fmt.Errorf("reading the start of request %s: %w", one.request, err)
		}
		took = append(took, started.Sub(one.posted))
	}
	q.progress("two APIs and two orchestrators: p99 %s", percentile(took, 99))
	return q.report.addDurations(twoOfEachName(), took)
}

// few measures the gaps with a handful of jobs waiting.
func (q *queues) few(ctx context.Context, plan queuesPlan) error {
	var gaps []time.Duration
	for len(gaps) < plan.gaps {
		_, found, err := q.fill(ctx, fewWaiting+gapsPerFile, gapsPerFile, nothing)
		if err != nil {
			return err
		}
		gaps = append(gaps, found...)
	}
	q.fewGap = percentile(gaps, 50)
	return q.reportGaps(fewWaiting, gaps)
}

func nothing(context.Context) error { return nil }

// many measures how long it takes to accept a file, the gaps between its jobs, and how
// long another account's job waits beside them.
func (q *queues) many(ctx context.Context, plan queuesPlan) error {
	took, gaps, err := q.fill(ctx, plan.much, plan.gaps, func(ctx context.Context) error { return q.overtaken(ctx, plan) })
	if err != nil {
		return err
	}
	if err := q.report.add(figure{acceptName(plan.much), 1, []benchfmt.Value{{Value: seconds(took), Unit: unitSeconds}}}); err != nil {
		return err
	}
	return q.reportGaps(plan.much, gaps)
}

// most measures the gaps with the largest backlog and the peak memory growth of each
// process.
func (q *queues) most(ctx context.Context, plan queuesPlan) error {
	pids, err := q.stack.Processes()
	if err != nil {
		return err
	}
	before, err := memoryBefore(pids)
	if err != nil {
		return err
	}
	took, gaps, err := q.fill(ctx, plan.most, plan.gaps, nothing)
	if err != nil {
		return err
	}
	if err := q.report.add(figure{acceptName(plan.most), 1, []benchfmt.Value{{Value: seconds(took), Unit: unitSeconds}}}); err != nil {
		return err
	}
	growth, err := before.growth()
	if err != nil {
		return err
	}
	for _, g := range growth {
		if err := q.report.add(figure{growthName(g.process, plan.most), 1, []benchfmt.Value{{Value: float64(g.bytes), Unit: g.unit}}}); err != nil {
			return err
		}
	}
	return q.reportGaps(plan.most, gaps)
}

// overtaken submits jobs one after the other from another account, and counts how many of
// the waiting jobs start between the hand-out of each and its start.
func (q *queues) overtaken(ctx context.Context, plan queuesPlan) error {
	token := "blm_" + rand.Text()
	hash := sha256.Sum256([]byte(token))
	if _, err := q.record.Exec(ctx, `insert into access_token (hash, kind, owner, role) values ($1, 'user', 'somebody-else', 'writer')`, hash[:]); err != nil {
		return fmt.Errorf("creating another account: %w", err)
	}
	other, err := apiclient.New(q.stack.API.BaseURL(), token, &http.Client{Timeout: 30 * time.Second})
	if err != nil {
		return err
	}
	var waited []time.Duration
	var overtaken []float64
	for range plan.pairs {
		r, err := other.CreateRequest(ctx, apiclient.NewRequest{Command: &apiclient.Command{Argv: jobArgv()}})
		if err != nil {
			return fmt.Errorf("submitting a job from another account: %w", err)
		}
		if err := q.await(ctx, r.ID); err != nil {
			return err
		}
		var wait, others float64
		if err := q.record.QueryRow(ctx, `
			select extract(epoch from n.started_at - j.handed_out_at)::float8,
				(select count(*)::float8 from job_run o where o.job_id <> j.id and o.started_at > j.handed_out_at and o.started_at < n.started_at)
			from job_run n join job_queue j on j.id = n.job_id join request_job rj on rj.job_id = j.id where rj.request_id = $1`, r.ID).Scan(&wait, &others); err != nil {
			return fmt.Errorf("reading the start of request %s: %w", r.ID, err)
		}
		waited, overtaken = append(waited, time.Duration(wait*float64(time.Second))), append(overtaken, others)
	}
	q.progress("beside %d jobs another account's job waits %s (p50), overtaken by at most %g", plan.much, percentile(waited, 50), slices.Max(overtaken))
	return q.report.add(figure{overtakenName(plan.much), len(overtaken), []benchfmt.Value{
		{Value: seconds(percentile(waited, 50)), Unit: unitP50}, {Value: seconds(percentile(waited, 99)), Unit: unitP99},
		{Value: percentile(overtaken, 50), Unit: unitP50Jobs}, {Value: percentile(overtaken, 99), Unit: unitP99Jobs}, {Value: slices.Max(overtaken), Unit: unitMostJobs},
	}})
}

func (q *queues) reportGaps(waiting int, gaps []time.Duration) error {
	p50 := percentile(gaps, 50)
	q.progress("gap between jobs with %d waiting: p50 %s, p99 %s", waiting, p50, percentile(gaps, 99))
	return q.report.add(figure{waitingGapName(waiting), len(gaps), []benchfmt.Value{
		{Value: seconds(p50), Unit: unitP50}, {Value: seconds(percentile(gaps, 99)), Unit: unitP99},
		{Value: rounded(float64(p50)/float64(q.fewGap), 3), Unit: unitOfFew},
	}})
}

// fill submits a file of jobs on the command line, measures a number of gaps between
// them, calls meanwhile while the rest waits, and cancels the rest. It returns how long
// the command took.
func (q *queues) fill(ctx context.Context, jobs, gaps int, meanwhile func(context.Context) error) (took time.Duration, found []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, queuesBound)
	defer cancel()
	file := filepath.Join(q.stack.Dir, "jobs.jsonl")
	if err := writeJobs(file, jobs); err != nil {
		return 0, nil, err
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, q.program, "submit", "--file", file)
	command.Env = append(os.Environ(), "BENCHLOOM_STATE_DIR="+q.stack.State(), "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=")
	command.Stderr = &stderr
	begun := time.Now()
	out, err := command.Output()
	if took = time.Since(begun); err != nil {
		return 0, nil, fmt.Errorf("submitting %d jobs: %w: %s", jobs, err, stderr.String())
	}
	if jobs > 2*gaps {
		q.progress("%d jobs in one file are accepted after %s", jobs, took.Round(time.Millisecond))
	}
	id, err := q.newest(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("%w, after: %s", err, out)
	}
	if found, err = q.gaps(ctx, id, gaps); err != nil {
		return 0, nil, err
	}
	if err := meanwhile(ctx); err != nil {
		return 0, nil, err
	}
	if jobs > 2*gaps { // otherwise it is nearly done
		if _, err := q.stack.API.CancelRequest(ctx, string(id), apiclient.Act{Reason: "measured"}); err != nil {
			return 0, nil, fmt.Errorf("cancelling request %s: %w", id, err)
		}
	}
	return took, found, q.await(ctx, id)
}

func writeJobs(file string, jobs int) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing a file of jobs: %w", err)
	}
	defer f.Close()
	text, err := json.Marshal(apiclient.Command{Argv: jobArgv()})
	if err != nil {
		return err
	}
	line := string(text) + "\n"
	w := bufio.NewWriter(f)
	for range jobs {
		if _, err := w.WriteString(line); err != nil {
			return fmt.Errorf("writing a file of jobs: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a file of jobs: %w", err)
	}
	return f.Close()
}

// newest returns the newest request.
func (q *queues) newest(ctx context.Context) (id bench.RequestID, err error) {
	if err := q.record.QueryRow(ctx, `select id from benchmark_request order by created_at desc limit 1`).Scan(&id); err != nil {
		return "", fmt.Errorf("reading the request: %w", err)
	}
	return id, nil
}

// gaps waits for a number of gaps between the end of one of a request's jobs and the
// start of the next, on the only collector.
func (q *queues) gaps(ctx context.Context, id bench.RequestID, n int) ([]time.Duration, error) {
	for {
		rows, err := q.record.Query(ctx, `
			select extract(epoch from begun - ended)::float8 from (
				select n.started_at as begun, lag(n.finished_at) over (order by n.started_at) as ended
				from job_run n join request_job rj on rj.job_id = n.job_id where rj.request_id = $1) runs
			where ended is not null order by begun limit $2`, id, n)
		if err != nil {
			return nil, fmt.Errorf("reading the runs of request %s: %w", id, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[float64])
		if err != nil {
			return nil, fmt.Errorf("reading the runs of request %s: %w", id, err)
		}
		if len(found) == n {
			gaps := make([]time.Duration, n)
			for i, s := range found {
				gaps[i] = time.Duration(s * float64(time.Second))
			}
			return gaps, nil
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return nil, fmt.Errorf("waiting for the jobs of request %s: %w", id, err)
		}
	}
}

// jobArgv returns the command of a waiting job: the shortest for which the order of
// starts is guaranteed.
func jobArgv() []string { return []string{"sleep", "0.05"} }

// await waits until a request has ended.
func (q *queues) await(ctx context.Context, id bench.RequestID) error {
	for {
		var open bool
		if err := q.record.QueryRow(ctx, `
			select status <> 'completed' from benchmark_request where id = $1`, id).Scan(&open); err != nil {
			return fmt.Errorf("reading request %s: %w", id, err)
		}
		if !open {
			return nil
		}
		if err := sleep(ctx, lookSoon); err != nil {
			return fmt.Errorf("waiting for the end of request %s: %w", id, err)
		}
	}
}
