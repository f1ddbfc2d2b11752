package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/e2e/selfbench/year"
)

// resultVisit asks for a page.
type resultVisit struct{ of, path string }

// visitsOf lists visits in a state, of each kind of page in turns, without asking twice for an
// address, also in another turn. Those of stale artifacts all show some. It refuses more than
// there are.
func visitsOf(y *year.Year, state string, turn, visits int) ([]resultVisit, error) {
	seen := make(map[string]bool)
	var out []resultVisit
	for n := range visits {
		v := resultVisit{of: pagesOfResults[n%len(pagesOfResults)]}
		v.path = pathOf(y, v.of, state, turn, n/len(pagesOfResults))
		if seen[v.path] {
			return nil, fmt.Errorf("a year of %d artifacts with the rows of %d has fewer than %d pages of each kind; ask for a shorter time", y.Artifacts, y.Rows, visits/len(pagesOfResults))
		}
		seen[v.path], out = true, append(out, v)
	}
	return out, nil
}

const (
	// Primes: their multiples come by everywhere before they come back.
	stepFar, stepNear = 7919, 31
	// turnsEach is the number of times for which each state is measured: a shared machine stops
	// now and then, and its disk with it. Of three times, the median counts.
	turnsEach = 3
	// paintTurn is the turn of painting, behind those of all states; turns is their number.
	paintTurn = turnsEach * 3
	turns     = paintTurn + 1
	// turnsByWords is the number of turns in which histories leave out as many benchmarks.
	turnsByWords = 4
)

// turnsOf are the turns of a state.
func turnsOf(state string) []int {
	first := turnsEach * max(0, slices.Index(statesOfResults, state))
	list := make([]int, turnsEach)
	for i := range list {
		list[i] = first + i
	}
	return list
}

// pathOf returns the address of the nth visit of a kind, other ones in each turn.
func pathOf(y *year.Year, of, state string, turn, n int) string {
	tags := y.Tags()
	newest, several := len(tags)-1, len(tags)/10
	b, apart := newest-n, 1
	if state == stateStale { // of which there are few
		b, apart = newest-n%staleArtifacts, 1+n/staleArtifacts
	}
	switch of {
	case ofNeighbours:
		return comparePath(tags, b-apart, b, ordersOfRows[turn])
	case ofDistant:
		return comparePath(tags, (n*stepFar+turn)%max(1, b-several), b, "")
	case ofWhole:
		return historyPath(y, turn, n, tags[0], tags[newest])
	case ofZoom:
		to := newest - (n*stepNear+turn)%max(1, len(tags)/2)
		if state == stateStale {
			to = b
		}
		from := to - several/5 - n*stepNear%max(1, len(tags)/4)
		return historyPath(y, turn, n, tags[max(0, from)], tags[max(0, to)])
	}
	return historyPath(y, turn, n, "", "")
}

// ordersOfRows gives the same comparisons another address in each turn: their rows in another
// order, which takes no time that counts.
var ordersOfRows = [turns]string{"", "name", "metric", "a", "b", "change", "interval", "n", "-name", "-metric"}

func comparePath(tags []string, a, b int, order string) string {
	query := url.Values{"a": {tags[max(0, a)]}, "b": {tags[max(0, b)]}}
	if order != "" {
		query.Set("sort", order)
	}
	return "/projects/" + year.Project + "/compare?" + query.Encode()
}

// historyPath leaves another benchmark out each time, or some, which hardly matters, or shows
// another metric.
func historyPath(y *year.Year, turn, n int, from, to string) string {
	ways := year.Metrics * y.Benchmarks / turnsByWords
	n = turn%turnsByWords*ways + n%max(1, ways)
	left := n / year.Metrics
	var words []string
	for i := range 1 + turn/turnsByWords {
		words = append(words, "-"+year.Benchmark((left+i)%y.Benchmarks))
	}
	query := url.Values{"metric": {string(year.Metric(n % year.Metrics))}, "q": {strings.Join(words, " ")}}
	if from != "" {
		query.Set("from", from)
		query.Set("to", to)
	}
	return "/projects/" + year.Project + "/history?" + query.Encode()
}

// load asks for a page each [pagesEvery], however long the answers take, and returns what
// came by kind. Times begin when a page was to be asked for, also where that was late.
func (r *resultPages) load(ctx context.Context, visits []resultVisit) (map[string]*answered, error) {
	took := nothingYet()
	var mu sync.Mutex
	var first sync.Once // says why, for all
	all, visiting := errgroup.WithContext(ctx)
	begun := time.Now()
	for n, v := range visits {
		at := begun.Add(time.Duration(n) * pagesEvery)
		if err := sleep(visiting, time.Until(at)); err != nil {
			break // an answer failed
		}
		all.Go(func() error {
			answer, err := r.ask(visiting, v.path)
			waited, failed := time.Since(at), errors.Is(err, errNoAnswer)
			if err != nil && !failed {
				return err
			}
			if failed {
				first.Do(func() { r.progress("a page has failed after %s: %q", waited.Round(time.Millisecond), err) })
			}
			mu.Lock()
			defer mu.Unlock()
			took[v.of].add(waited, answer, failed)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return took, ctx.Err()
}

// nothingYet has no answers of each kind of page.
func nothingYet() map[string]*answered {
	took := make(map[string]*answered)
	for _, of := range pagesOfResults {
		took[of] = &answered{}
	}
	return took
}

// errNoAnswer reports that the API was too busy to answer, or has failed.
var errNoAnswer = errors.New("no answer")

// ask reads a page as a browser does, and returns its body as it was sent.
func (r *resultPages) ask(ctx context.Context, path string) (body, error) {
	fail := func(err error) (body, error) { return body{}, fmt.Errorf("reading page %s: %w", path, err) }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address+path, nil)
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Accept-Encoding", "gzip") // set here, it stays compressed
	response, err := r.client.Do(request)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok && e.Timeout() && ctx.Err() == nil {
			err = errors.Join(errNoAnswer, err)
		}
		return fail(err)
	}
	defer response.Body.Close()
	sent, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fail(err)
	case response.StatusCode >= http.StatusInternalServerError:
		return fail(errors.Join(errNoAnswer, errors.New(response.Status)))
	case response.StatusCode != http.StatusOK:
		return fail(errors.New(response.Status))
	}
	return body{sent, response.Header.Get("Content-Encoding") == "gzip"}, nil
}

// body of an answer.
type body struct {
	sent       []byte
	compressed bool
}

// size returns its size in bytes, compressed as a proxy would if it is not yet.
func (b body) size() (int64, error) {
	if b.compressed {
		return int64(len(b.sent)), nil
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b.sent)
	if err = errors.Join(err, w.Close()); err != nil {
		return 0, fmt.Errorf("compressing an answer: %w", err)
	}
	return int64(out.Len()), nil
}
