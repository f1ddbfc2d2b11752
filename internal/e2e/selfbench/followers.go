package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func shownName(state string) string { return "Shown/state=" + state }
func followersName() string         { return "Followers/compared=one" }

// followedSuite has one test case, which takes long enough to be seen. All tags name one
// artifact.
const followedSuite = `name: followed
description: one test case that takes a moment
artifact: {provider: directory, parameters: {path: "%s"}}
iterations: 1
benchmarks:
  - {name: moment, measure: {run: [sleep, "0.3"]}}
`

const (
	followedProject = "followed"
	// followedRequests are followed at once; all but the first wait for their turn, and
	// the last is cancelled meanwhile.
	followedRequests = 10
	// watched is the time for which statements are counted.
	watched = 15 * time.Second
	// followBound bounds the time from a request's submission to its end.
	followBound = 5 * time.Minute
)

// stateOfRequest is a state of a request: what its page says, and since when it is so.
type stateOfRequest struct {
	name, words string
	since       string // SQL of a request r; null: it has never been so
}

// statesOfRequest are in the order in which a request has them. One that is over before
// anybody looks counts as shown with a later one.
var statesOfRequest = []stateOfRequest{
	{"waiting", "It waits for", "r.created_at"},
	{"admitted", "its jobs are being written", "r.admitted_at"},
	{"expanded", "none of its jobs runs", "r.expanded_at"},
	{"running", "running and", "(select min(j.started_at) from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id)"},
	{"completing", "Its jobs are done", "r.jobs_done_at"},
	{"completed", "It has ended", "r.completed_at"},
}

var sentencePattern = regexp.MustCompile(`<p class="sentence">(?s:.*?)</p>`)

// shownState returns the place of the state that a page shows.
func shownState(page string) (int, error) {
	sentence := sentencePattern.FindString(page)
	for i := len(statesOfRequest) - 1; i >= 0; i-- {
		if strings.Contains(sentence, statesOfRequest[i].words) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the page shows no known state: %q", sentence)
}

// states measures how soon the page of a request shows each of its states to those who
// follow it.
func (p *pages) states(ctx context.Context, _ pagesPlan) error {
	if err := p.apply(ctx, followedProject); err != nil {
		return err
	}
	all, following := errgroup.WithContext(ctx)
	shown := make([][]time.Time, followedRequests)
	ids := make([]bench.RequestID, followedRequests)
	for n := range ids {
		r, err := p.stack.API.CreateRequest(ctx, apiclient.NewRequest{Project: followedProject, Type: bench.Release, Tag: fmt.Sprintf("1.%d", n)})
		if err != nil {
			return fmt.Errorf("submitting a request to be followed: %w", err)
		}
		ids[n] = r.ID
		all.Go(func() (err error) {
			shown[n], err = p.follow(following, r.ID)
			return err
		})
	}
	if _, err := p.stack.API.CancelRequest(ctx, string(ids[followedRequests-1]), apiclient.Act{Reason: "pages are measured"}); err != nil {
		return fmt.Errorf("cancelling a request that is followed: %w", err)
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i, state := range statesOfRequest {
		var took []time.Duration
		for n, id := range ids {
			var since *time.Time
			if err := p.record.QueryRow(ctx, `select `+state.since+` from benchmark_request r where r.id = $1`, id).Scan(&since); err != nil {
				return fmt.Errorf("reading since when request %s was %s: %w", id, state.name, err)
			}
			if since != nil {
				took = append(took, max(0, shown[n][i].Sub(*since)))
			}
		}
		p.progress("%s is shown after %s (p50), %s (at most)", state.name, percentile(took, 50).Round(time.Millisecond), percentile(took, 100).Round(time.Millisecond))
		if err := p.report.add(figure{shownName(state.name), len(took), []benchfmt.Value{
			{Value: seconds(percentile(took, 50)), Unit: unitP50}, {Value: seconds(percentile(took, 100)), Unit: unitMost},
		}}); err != nil {
			return err
		}
	}
	return nil
}

var revisionPattern = regexp.MustCompile(`data-revision="([0-9a-f]+)"`)

// follow follows the page of a request to its end, as a browser does: it reads the page
// again when its stream tells of a change. It returns when the page first showed each state,
// or a later one.
func (p *pages) follow(ctx context.Context, id bench.RequestID) ([]time.Time, error) {
	path := "/requests/" + string(id)
	shown := make([]time.Time, len(statesOfRequest))
	revision := ""
	look := func() (bool, error) {
		page, err := p.get(ctx, path)
		if err != nil {
			return false, err
		}
		state, err := shownState(page)
		if err != nil {
			return false, err
		}
		for i := range state + 1 {
			if shown[i].IsZero() {
				shown[i] = time.Now()
			}
		}
		if found := revisionPattern.FindStringSubmatch(page); found != nil {
			revision = found[1]
		}
		return state == len(statesOfRequest)-1, nil
	}
	ended, err := look()
	if err != nil || ended {
		return shown, err
	}
	ctx, cancel := context.WithTimeout(ctx, followBound)
	defer cancel()
	stream, err := p.stream(ctx, "request:"+string(id), revision)
	if err != nil {
		return nil, err
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if told, ok := strings.CutPrefix(lines.Text(), "data: "); !ok || told == revision {
			continue
		}
		if ended, err := look(); err != nil || ended {
			return shown, err
		}
	}
	return nil, fmt.Errorf("the stream of request %s ended before the request: %w", id, cmp.Or(lines.Err(), ctx.Err(), io.ErrUnexpectedEOF))
}

// stream opens a stream of live updates. It has no time limit but that of the context.
func (p *pages) stream(ctx context.Context, subject, since string) (*http.Response, error) {
	address := p.address + "/live?subject=" + url.QueryEscape(subject) + "&since=" + url.QueryEscape(since)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: p.client.Transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("following %s: %w", subject, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("following %s: %s", subject, response.Status), response.Body.Close())
	}
	return response, nil
}

// followers counts what Postgres carries out while one follows a page of a request whose job
// goes on, and while many do.
func (p *pages) followers(ctx context.Context, plan pagesPlan) error {
	ids, err := p.submit(ctx, 1, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", "while :; do echo still here; sleep 0.5; done"}}})
	if err != nil {
		return err
	}
	one, err := p.statementsWhile(ctx, ids[0], 1)
	if err != nil {
		return err
	}
	many, err := p.statementsWhile(ctx, ids[0], plan.clients)
	if err != nil {
		return err
	}
	if one.looks == 0 {
		return errors.New("nobody has looked for a change while one followed a page")
	}
	p.progress("statements a second: %.3g of %.3g with one who follows, %.3g of %.3g with %d", one.looks, one.all, many.looks, many.all, plan.clients)
	if _, err := p.stack.API.CancelRequest(ctx, string(ids[0]), apiclient.Act{Reason: "measured"}); err != nil {
		return fmt.Errorf("cancelling request %s: %w", ids[0], err)
	}
	return p.report.add(figure{followersName(), plan.clients, []benchfmt.Value{
		{Value: rounded(many.looks, 3), Unit: unitLooks}, {Value: rounded(many.looks/one.looks, 3), Unit: unitOfOne}, {Value: rounded(one.all, 2), Unit: unitOne}, {Value: rounded(many.all, 2), Unit: unitMany},
	}})
}

// statementRates are statements a second.
type statementRates struct {
	looks float64 // for changes of what is followed
	all   float64 // of all processes of the stack
}

// statementsWhile counts statements while some follow a request. Each reads its stream.
func (p *pages) statementsWhile(ctx context.Context, id bench.RequestID, clients int) (statementRates, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range clients {
		stream, err := p.stream(ctx, "request:"+string(id), "from-the-beginning")
		if err != nil {
			return statementRates{}, err
		}
		all.Go(func() {
			defer stream.Body.Close()
			_, _ = io.Copy(io.Discard, stream.Body) // until it is not needed any more
		})
	}
	if _, err := p.record.Exec(ctx, `select pg_stat_statements_reset()`); err != nil {
		return statementRates{}, fmt.Errorf("counting statements anew: %w", err)
	}
	begun := time.Now()
	if err := sleep(ctx, watched); err != nil {
		return statementRates{}, err
	}
	var looks, every float64
	if err := p.record.QueryRow(ctx, `
		select coalesce(sum(calls) filter (where query like '%md5(concat_ws%' and query like '%benchmark_request r where r.id =%'), 0)::float8, coalesce(sum(calls), 0)::float8
		from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`).Scan(&looks, &every); err != nil {
		return statementRates{}, fmt.Errorf("reading the counted statements: %w", err)
	}
	took := time.Since(begun).Seconds()
	return statementRates{looks / took, every / took}, nil
}
