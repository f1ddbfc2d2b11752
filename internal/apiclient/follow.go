package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// silence bounds the pauses of a stream; after a longer one it counts as broken. The API gives a sign of life every 15 seconds.
const silence = time.Minute

var errSilent = errors.New("the stream says nothing any more")

// Names of the events of a run's samples.
const (
	eventSamples = "samples"
	eventEnd     = "end"
)

// FollowProfile reads a run's samples as they arrive, page by page, and calls each for every page. It returns nil once the run
// is over and everything was read. Any other end is an error; if it is transient, a call with from set to next goes on after
// the page that was read last.
func (c *Client) FollowProfile(ctx context.Context, run bench.RunID, from int, each func(ProfileMetrics) error, series ...string) (next int, err error) {
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := time.AfterFunc(silence, func() { stop(errSilent) })
	defer watch.Stop()
	query := url.Values{"follow": {"true"}, "series": series}
	if from > 0 {
		query.Set("from", strconv.Itoa(from))
	}
	path := v1("runs", string(run), "profile", "metrics")
	response, err := c.send(following, ctx, call{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return from, err
	}
	defer response.Body.Close()
	var told error // of each or a page: not of the stream
	err = readEvents(response.Body, func() { watch.Reset(silence) }, func(e event) (bool, error) {
		switch e.name {
		case eventEnd:
			return false, nil
		case eventSamples:
			var page ProfileMetrics
			if err := json.Unmarshal([]byte(e.data), &page); err != nil {
				told = fmt.Errorf("reading the stream of %s%s: %w; is the API of a similar version?", c.base, path, err)
				return false, nil
			}
			watch.Stop() // a slow each does not break the stream
			told = each(page)
			watch.Reset(silence)
			if told == nil {
				from = page.Next
			}
		}
		return told == nil, nil
	})
	switch {
	case told != nil:
		return from, told
	case err != nil && errors.Is(context.Cause(following), errSilent):
		return from, transportError(ctx, c.base, errSilent)
	case err != nil:
		return from, transportError(ctx, c.base, err)
	}
	return from, nil
}
