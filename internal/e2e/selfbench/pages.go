package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// Kinds of pages that are asked for, with what the API's metrics call their routes.
const (
	ofRequest = "request"
	ofQueue   = "queue"
)

var pageRoutes = map[string][]string{
	ofRequest: {"/requests/{request}"},
	ofQueue:   {"/queues", "/projects/{project}/queue"},
}

func pagesName(of string) string { return "Pages/of=" + of }
func pagesByClientName(of string) string {
	return pagesName(of) + "/by=client"
}

// pagesPlan sets what is asked for, and beside what.
type pagesPlan struct {
	jobs    int           // that wait in one request
	during  time.Duration // of asking for pages
	clients int           // that follow one page
}

const (
	// pagesEvery is the interval of visits: 20 a second, however long an answer takes.
	pagesEvery = 50 * time.Millisecond
	// endedBeside and waitingBeside are the requests with one job each, besides the one
	// with very many.
	endedBeside, waitingBeside = 50, 150
	// ofTheLargest is the number of addresses of the request with very many jobs.
	ofTheLargest = 10
	// queueEvery: of so many visits one is for a page of queues.
	queueEvery = 4
	// heldProjects have requests that wait for their turn, as many as heldRequests each.
	heldProjects, heldRequests = 4, 5
	pagesBound                 = 15 * time.Minute
)

// measurePages measures how soon a page shows what has happened, what those cost who
// follow it, and the latency of pages beside very many jobs.
func measurePages(ctx context.Context, o options, plan pagesPlan, report *report, progress func(string, ...any)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, pagesBound)
	defer cancel()
	s, err := countingStack(ctx, o.programs())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	record, err := pgx.Connect(ctx, s.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	if _, err := record.Exec(ctx, `create extension if not exists pg_stat_statements`); err != nil {
		return fmt.Errorf("counting statements: %w", err)
	}
	p := &pages{
		stack: s, program: o.program, record: record, report: report, progress: progress, address: s.Up.Addresses[up.AddressAPI],
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: plan.clients}},
	}
	defer p.client.CloseIdleConnections()
	for _, step := range []func(context.Context, pagesPlan) error{p.states, p.followers, p.visits} {
		if err := step(ctx, plan); err != nil {
			return err
		}
	}
	return nil
}

// countingStack starts a stack whose Postgres counts statements.
func countingStack(ctx context.Context, programs livestack.Programs) (*livestack.Stack, error) {
	s, err := livestack.Start(ctx, programs)
	if err != nil {
		return nil, err
	}
	if err := preload(ctx, s.Up.Addresses[up.AddressDatabase]); err != nil {
		return nil, errors.Join(err, s.Stop(true))
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	return livestack.Continue(ctx, programs, s.Dir)
}

// preload makes Postgres load pg_stat_statements at its next start.
func preload(ctx context.Context, database string) (err error) {
	record, err := pgx.Connect(ctx, database)
	if err != nil {
		return fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	var there bool
	if err := record.QueryRow(ctx, `select exists (select from pg_available_extensions where name = 'pg_stat_statements')`).Scan(&there); err != nil {
		return fmt.Errorf("looking for pg_stat_statements: %w", err)
	}
	if !there {
		return errors.New("this Postgres has no pg_stat_statements: install PostgreSQL's contrib modules")
	}
	if _, err := record.Exec(ctx, `alter system set shared_preload_libraries = 'pg_stat_statements'`); err != nil {
		return fmt.Errorf("loading pg_stat_statements: %w", err)
	}
	return nil
}

// pages measures pages of one stack.
type pages struct {
	stack            *livestack.Stack
	program, address string
	record           *pgx.Conn
	report           *report
	progress         func(string, ...any)
	client           *http.Client
}

// get returns a page.
func (p *pages) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "text/html")
	response, err := p.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading page %s: %w", path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return "", fmt.Errorf("reading page %s: %w", path, err)
	}
	return string(text), nil
}

// visits asks for pages at a fixed rate, while one job runs and very many wait.
func (p *pages) visits(ctx context.Context, plan pagesPlan) error {
	addresses, err := p.fill(ctx, plan)
	if err != nil {
		return err
	}
	before, err := p.latencies(ctx)
	if err != nil {
		return err
	}
	visits := int(plan.during / pagesEvery)
	p.progress("asking for %d pages, one each %s, beside %d waiting jobs", visits, pagesEvery, plan.jobs)
	took := map[string][]time.Duration{}
	var mu sync.Mutex
	all, visiting := errgroup.WithContext(ctx)
	tick := time.NewTicker(pagesEvery)
	defer tick.Stop()
	for n := range visits {
		of, path := addresses.at(n)
		all.Go(func() error {
			begun := time.Now()
			_, err := p.get(visiting, path)
			mu.Lock()
			defer mu.Unlock()
			took[of] = append(took[of], time.Since(begun))
			return err
		})
		select {
		case <-visiting.Done():
		case <-tick.C:
		}
	}
	if err := all.Wait(); err != nil {
		return err
	}
	after, err := p.latenciesOf(ctx, before, visits)
	if err != nil {
		return err
	}
	for _, of := range []string{ofRequest, ofQueue} {
		if err := p.report.addDurations(pagesByClientName(of), took[of]); err != nil {
			return err
		}
		found := after[of].since(before[of])
		p.progress("pages of %s: p50 %.3g s, p99 %.3g s", of, found.quantile(0.5), found.quantile(0.99))
		if err := p.report.add(figure{pagesName(of), found.count(), []benchfmt.Value{
			{Value: rounded(found.quantile(0.5), 6), Unit: unitP50}, {Value: rounded(found.quantile(0.99), 6), Unit: unitP99},
		}}); err != nil {
			return err
		}
	}
	return nil
}

// fill makes the requests whose pages are asked for: some that have ended, one whose job
// goes on, the one with very many jobs, and others behind it.
func (p *pages) fill(ctx context.Context, plan pagesPlan) (visited, error) {
	command := func(script string) apiclient.NewRequest {
		return apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", script}}}
	}
	ended, err := p.submit(ctx, endedBeside, command("echo done"))
	if err != nil {
		return visited{}, err
	}
	for _, id := range ended {
		if err := p.awaitStatus(ctx, id, bench.Completed); err != nil {
			return visited{}, err
		}
	}
	goesOn, err := p.submit(ctx, 1, command("while :; do echo still here; sleep 0.5; done"))
	if err != nil {
		return visited{}, err
	}
	projects, err := p.hold(ctx)
	if err != nil {
		return visited{}, err
	}
	took, largest, err := p.submitFile(ctx, plan.jobs)
	if err != nil {
		return visited{}, err
	}
	p.progress("%d jobs in one file are accepted after %s", plan.jobs, took.Round(time.Millisecond))
	waiting, err := p.submit(ctx, waitingBeside, command("echo later"))
	if err != nil {
		return visited{}, err
	}
	return addressesOf(append(append(goesOn, waiting...), ended...), largest, projects), nil
}

// submit submits a request several times, some at once.
func (p *pages) submit(ctx context.Context, times int, asked apiclient.NewRequest) ([]bench.RequestID, error) {
	ids := make([]bench.RequestID, times)
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(4)
	for n := range times {
		all.Go(func() error {
			r, err := p.stack.API.CreateRequest(ctx, asked)
			ids[n] = r.ID
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("submitting a request: %w", err)
	}
	return ids, nil
}

// submitFile submits very many jobs on the command line.
func (p *pages) submitFile(ctx context.Context, jobs int) (time.Duration, bench.RequestID, error) {
	file := filepath.Join(p.stack.Dir, "jobs.jsonl")
	if err := writeJobs(file, jobs); err != nil {
		return 0, "", err
	}
	command := exec.CommandContext(ctx, p.program, "submit", "--file", file)
	command.Env = append(os.Environ(), "BENCHLOOM_STATE_DIR="+p.stack.State(), "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=")
	begun := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("submitting %d jobs: %w: %s", jobs, err, out)
	}
	took := time.Since(begun)
	var id bench.RequestID
	if err := p.record.QueryRow(ctx, `select id from benchmark_request where batch = $1 order by created_at desc limit 1`, jobs).Scan(&id); err != nil {
		return 0, "", fmt.Errorf("looking for the request of %d jobs: %w", jobs, err)
	}
	return took, id, nil
}

// hold makes projects with requests that wait for their turn, and one without.
func (p *pages) hold(ctx context.Context) ([]string, error) {
	projects := []string{"nothing-waits"}
	for n := range heldProjects {
		projects = append(projects, fmt.Sprintf("held-%d", n))
	}
	if err := p.apply(ctx, projects...); err != nil {
		return nil, err
	}
	for _, name := range projects[1:] {
		if _, err := p.stack.API.PauseQueue(ctx, name, apiclient.Act{Reason: "pages are measured"}); err != nil {
			return nil, fmt.Errorf("pausing project %s: %w", name, err)
		}
		for n := range heldRequests {
			if _, err := p.stack.API.CreateRequest(ctx, apiclient.NewRequest{Project: name, Type: bench.Release, Tag: fmt.Sprintf("1.%d", n)}); err != nil {
				return nil, fmt.Errorf("submitting to project %s: %w", name, err)
			}
		}
	}
	return projects, nil
}

// apply applies projects with the suite of requests that are followed.
func (p *pages) apply(ctx context.Context, names ...string) error {
	suiteDir, artifact := filepath.Join(p.stack.Dir, "followed"), filepath.Join(p.stack.Dir, "followed-artifact")
	for _, dir := range []string{suiteDir, artifact} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a suite: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(suiteDir, suite.FileName), fmt.Appendf(nil, followedSuite, artifact), 0o644); err != nil {
		return fmt.Errorf("making a suite: %w", err)
	}
	projects := make([]apiclient.Project, len(names))
	for i, name := range names {
		projects[i] = apiclient.Project{Name: name, Config: bench.ProjectConfig{Verify: bench.VerifyOff}}
	}
	return applySuite(ctx, p.stack.API, suiteDir, projects...)
}

// awaitStatus waits until a request has a status.
func (p *pages) awaitStatus(ctx context.Context, id bench.RequestID, status bench.RequestStatus) error {
	for {
		r, err := p.stack.API.Request(ctx, string(id))
		if err != nil {
			return fmt.Errorf("reading request %s: %w", id, err)
		}
		if r.Status == status {
			return nil
		}
		if err := sleep(ctx, lookSoon); err != nil {
			return fmt.Errorf("waiting for request %s: %w", id, err)
		}
	}
}

// visited are the addresses of pages by their kind.
type visited map[string][]string

// addressesOf lists the addresses of pages: each request's with several filters and orders,
// and those of queues.
func addressesOf(requests []bench.RequestID, largest bench.RequestID, projects []string) visited {
	out := visited{}
	queries := []string{"", "?sort=name", "?sort=-name", "?sort=took", "?sort=-took", "?show=all"}
	for _, query := range queries {
		for _, id := range requests {
			out[ofRequest] = append(out[ofRequest], "/requests/"+string(id)+query)
		}
	}
	// Those of the largest stand among them at equal distances.
	queries = append(queries, "?sort=status", "?sort=class", "?show=queued", "?show=handed_out")[:ofTheLargest]
	step := len(requests) * 4 / ofTheLargest
	for n, query := range queries {
		out[ofRequest][n*step] = "/requests/" + string(largest) + query
	}
	for _, name := range projects {
		out[ofQueue] = append(out[ofQueue], "/projects/"+name+"/queue")
	}
	for _, order := range []string{"", "&sort=name", "&sort=-name", "&sort=due", "&sort=-due", "&sort=received", "&sort=-received", "&sort=waiting", "&sort=-waiting", "&sort=running", "&sort=-running", "&sort=wait", "&sort=-wait"} {
		for _, by := range []string{"queue", "user", "host", "pool"} {
			out[ofQueue] = append(out[ofQueue], "/queues?by="+by+order)
		}
	}
	return out
}

// at returns the kind and address of the nth visit.
func (v visited) at(n int) (of, path string) {
	of, nth := ofRequest, n-n/queueEvery-1
	if n%queueEvery == 0 {
		of, nth = ofQueue, n/queueEvery
	}
	return of, v[of][nth%len(v[of])]
}
