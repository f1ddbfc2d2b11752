package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/e2e/selfbench/year"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// Kinds of pages of results.
const (
	ofNeighbours = "neighbours" // comparisons of artifacts that follow each other
	ofDistant    = "distant"    // and of those that are far apart
	ofNewest     = "newest"     // histories as they begin: the newest artifacts
	ofWhole      = "whole"      // whole histories
	ofZoom       = "zoom"       // parts of histories
)

var pagesOfResults = []string{ofNeighbours, ofDistant, ofNewest, ofWhole, ofZoom}

// States of what pages of results are read from.
const (
	// stateAlone belongs to a stack that answers nothing else; it has no limits.
	stateAlone = "alone"
	stateWarm  = "warm"
	// stateCold follows a restart of Postgres with nothing in the page cache.
	stateCold = "cold"
	// stateStale has artifacts whose results have changed since they were packed.
	stateStale = "stale"
)

// statesOfResults are those under load, in the order in which they are measured.
var statesOfResults = []string{stateWarm, stateCold, stateStale}

const (
	unitFailed  = "failed" // answers that the API was too busy to give, or failed to
	unitLargest = "most-B" // the largest answer, compressed
	unitPeak    = "peak-B"
	unitBytes   = "B"
)

func resultsName(of, state string) string {
	return "Results/of=" + of + "/state=" + state
}
func answerName(of string) string   { return "Answer/of=" + of }
func resultsMemoryName() string     { return "ResultsMemory/process=api" }
func madeName(artifacts int) string { return fmt.Sprintf("Year/artifacts=%d", artifacts) }
func paintName(from string) string  { return "Paint/charts=24/from=" + from }

// resultsPlan sets on what pages of results are measured, and how long.
type resultsPlan struct {
	size   year.Size
	keep   string        // directory in which years are kept
	during time.Duration // of asking for pages, in each state
	paints int           // pages that a browser paints
}

// resultsBound bounds the part without the making of a year.
const resultsBound = 30 * time.Minute

// staleArtifacts are the newest ones, as many as are packed together.
const staleArtifacts = 16

// keptYears is the default directory for years.
func keptYears() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // there is no home directory
	}
	return filepath.Join(cache, "benchloom", "years")
}

// measureResults measures the pages of results of a large project, beside a job that runs.
func measureResults(ctx context.Context, o options, plan resultsPlan, report *report, progress func(string, ...any)) (err error) {
	programs := o.programs()
	if err := programs.Find(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return fmt.Errorf("making a state directory: %w", err)
	}
	made, err := year.Keep{Dir: plan.keep, Progress: progress}.Copy(ctx, plan.size, filepath.Join(dir, "state"))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	what := "a kept year is used"
	if made.New {
		what = "a year was made"
	}
	progress("%s; making it took %s on %s", what, time.Duration(made.Seconds*float64(time.Second)), made.At.Format(time.DateOnly))
	if err := report.add(figure{madeName(plan.size.Artifacts), 1, []benchfmt.Value{{Value: made.Seconds, Unit: unitSeconds}, {Value: float64(made.Bytes), Unit: unitBytes}}}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resultsBound)
	defer cancel()
	s, err := livestack.Continue(ctx, programs, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	r := &resultPages{
		pages: pages{
			stack: s, program: o.program, report: report, progress: progress, address: s.Up.Addresses[up.AddressAPI],
			client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		},
		year: year.New(plan.size, made.At), largest: make(map[string]int64),
	}
	defer r.client.CloseIdleConnections()
	return r.measure(ctx, plan)
}

// resultPages measures pages of the results of a year.
type resultPages struct {
	pages
	year *year.Year
	// largest is the size of the largest answer by kind of page, in bytes, compressed.
	largest map[string]int64
}

func (r *resultPages) measure(ctx context.Context, plan resultsPlan) error {
	if err := r.configure(ctx); err != nil {
		return err
	}
	goesOn, err := r.submit(ctx, 1, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", "while :; do echo still here; sleep 0.5; done"}}})
	if err != nil {
		return err
	}
	if err := r.awaitStatus(ctx, goesOn[0], bench.InProgress); err != nil {
		return err
	}
	pids, err := r.stack.Processes()
	if err != nil {
		return err
	}
	api := pids["api"]
	if _, err := memoryBefore(map[string]int{"api": api}); err != nil {
		return err
	}
	if err := r.alone(ctx, int(plan.during/pagesEvery)); err != nil {
		return err
	}
	if err := r.visitsIn(ctx, stateWarm, plan.during, func(context.Context) error { return nil }); err != nil {
		return err
	}
	if err := r.visitsIn(ctx, stateCold, plan.during, r.chill); err != nil {
		return err
	}
	record, err := pgx.Connect(ctx, r.stack.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	err = r.visitsIn(ctx, stateStale, plan.during, func(ctx context.Context) error { return r.stale(ctx, record) })
	if err := errors.Join(err, record.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	peak, err := statusField(api, "VmHWM:")
	if err != nil {
		return fmt.Errorf("reading the memory of the API, which must not have been started again: %w", err)
	}
	r.progress("the API took at most %.1f MB", float64(peak)/1e6)
	if err := r.report.add(figure{resultsMemoryName(), 1, []benchfmt.Value{{Value: float64(peak), Unit: unitPeak}}}); err != nil {
		return err
	}
	for _, of := range pagesOfResults {
		if err := r.report.add(figure{answerName(of), 1, []benchfmt.Value{{Value: float64(r.largest[of]), Unit: unitLargest}}}); err != nil {
			return err
		}
	}
	return r.paint(ctx, plan.paints)
}

// configure gives the project of the year a suite with its benchmarks.
func (r *resultPages) configure(ctx context.Context) error {
	dir, artifact := filepath.Join(r.stack.Dir, "suite"), filepath.Join(r.stack.Dir, "artifact")
	for _, d := range []string{dir, artifact} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making a suite: %w", err)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: year\ndescription: the benchmarks of a large project\nartifact: {provider: directory, parameters: {path: %q}}\niterations: %d\nbenchmarks:\n", artifact, r.year.Values)
	for n := range r.year.Benchmarks {
		category := bench.Primary
		if n%3 == 2 {
			category = bench.Secondary
		}
		fmt.Fprintf(&text, "  - {name: %s, category: %s, measure: {run: [\"true\"]}}\n", year.Benchmark(n), category)
	}
	if err := os.WriteFile(filepath.Join(dir, suite.FileName), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("making a suite: %w", err)
	}
	return applySuite(ctx, r.stack.API, dir, apiclient.Project{Name: year.Project, Config: bench.ProjectConfig{Verify: bench.VerifyOff}})
}

// visitsIn asks for pages of each kind for a time, in each turn of a state, which enter brings
// about, and reports how long answers took from the moment at which they were to be asked for.
func (r *resultPages) visitsIn(ctx context.Context, state string, during time.Duration, enter func(context.Context) error) error {
	for _, turn := range turnsOf(state) {
		visits, err := visitsOf(r.year, state, turn, int(during/pagesEvery))
		if err != nil {
			return err
		}
		if err := enter(ctx); err != nil {
			return err
		}
		r.progress("asking for %d pages of results, one each %s: %s", len(visits), pagesEvery, state)
		took, err := r.load(ctx, visits)
		if err != nil {
			return err
		}
		if err := r.tell(state, took); err != nil {
			return err
		}
	}
	return nil
}

// alone asks for pages of each kind one after the other: what an answer takes if it waits
// for no other.
func (r *resultPages) alone(ctx context.Context, after int) error {
	visits, err := visitsOf(r.year, stateWarm, turnsOf(stateWarm)[0], after+aloneOfEach*len(pagesOfResults))
	if err != nil {
		return err
	}
	took := nothingYet()
	for _, v := range visits[after:] {
		begun := time.Now()
		answer, err := r.ask(ctx, v.path)
		if err != nil && !errors.Is(err, errNoAnswer) {
			return err
		}
		took[v.of].add(time.Since(begun), answer, err != nil)
	}
	return r.tell(stateAlone, took)
}

// aloneOfEach is the number of pages of each kind that are asked for alone.
const aloneOfEach = 8

// tell reports answers by kind of page.
func (r *resultPages) tell(state string, took map[string]*answered) error {
	for _, of := range pagesOfResults {
		found := took[of]
		largest, err := found.largest.size()
		if err != nil {
			return err
		}
		p50, p99 := percentile(found.took, 50), percentile(found.took, 99)
		r.progress("%s, %s: %d answers, p50 %s, p99 %s, at most %d bytes (%d as sent), %d failed", of, state, len(found.took), p50.Round(time.Millisecond), p99.Round(time.Millisecond), largest, len(found.largest.sent), found.failed)
		if err := r.report.add(figure{resultsName(of, state), len(found.took), []benchfmt.Value{
			{Value: seconds(p50), Unit: unitP50}, {Value: seconds(p99), Unit: unitP99}, {Value: float64(found.failed), Unit: unitFailed},
		}}); err != nil {
			return err
		}
		r.largest[of] = max(r.largest[of], largest)
	}
	return nil
}

// stale changes the newest artifacts: all of their rows are written anew, and the values of one
// benchmark, another one of each, are no longer those that were packed, as if it had been
// measured again. As long as the connection is open, they are not packed.
func (r *resultPages) stale(ctx context.Context, record *pgx.Conn) error {
	tags := r.year.Tags()
	tags = tags[max(0, len(tags)-staleArtifacts):]
	benchmarks := make([]string, len(tags))
	for i := range tags {
		benchmarks[i] = year.Benchmark(i * r.year.Benchmarks / len(tags))
	}
	_, err := record.Exec(ctx, `select pg_advisory_lock(hashtextextended('benchloom packed results of ' || $1, 0))`, year.Project)
	if err == nil {
		// Whatever changes a row marks its artifact.
		_, err = record.Exec(ctx, `
			update test_result set message = message where artifact_id in (select id from artifact where project = $1 and tag = any($2))`, year.Project, tags)
	}
	changed := int64(0)
	if err == nil {
		var done pgconn.CommandTag
		done, err = record.Exec(ctx, `
			update pstat p set value = p.value * 1.01
			from unnest($2::text[], $3::text[]) as w (tag, benchmark)
			join artifact a on a.project = $1 and a.tag = w.tag
			join test_case tc on tc.project = $1 and tc.benchmark = w.benchmark
			join pstat_series se on se.test_case_id = tc.id
			where p.series_id = se.id and p.artifact_id = a.id`, year.Project, tags, benchmarks)
		changed = done.RowsAffected()
	}
	if err == nil && changed == 0 {
		err = errors.New("they have no values")
	}
	if err != nil {
		return fmt.Errorf("making artifacts stale: %w", err)
	}
	r.progress("the rows of %d artifacts have been written anew, with %d changed values", len(tags), changed)
	return nil
}

// answered are the answers of one kind of pages.
type answered struct {
	took    []time.Duration
	largest body
	failed  int
}

// forEver stands for the time that an answer took that never came.
const forEver = time.Hour

// add counts an answer.
func (a *answered) add(took time.Duration, answer body, failed bool) {
	if failed {
		a.failed++
		took = forEver
	}
	if a.took = append(a.took, took); len(answer.sent) > len(a.largest.sent) {
		a.largest = answer
	}
}
