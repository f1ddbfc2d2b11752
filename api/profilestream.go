package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

const (
	eventStream = "text/event-stream"
	// sampledEvery is the interval at which a stream looks for samples, which arrive every ten seconds.
	sampledEvery = time.Second
	// aliveEvery is the interval of signs of life, so that a client notices a broken stream.
	aliveEvery = 15 * time.Second
)

// eventID reads the ID of an event; it is the number of an upload.
func eventID(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}

// follow sends pages as they come, from the first one on, until the run has ended and everything has arrived.
func (s *profileHandlers) follow(ctx huma.Context, id bench.RunID, in *getProfileMetrics, page apiclient.ProfileMetrics) {
	w, ok := ctx.BodyWriter().(http.ResponseWriter)
	if !ok {
		panic("api: an answer without a connection") // the adapter has one
	}
	out := events{w, http.NewResponseController(w)}
	ctx.SetHeader("Content-Type", eventStream)
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetHeader("X-Accel-Buffering", "no") // nginx would keep events back
	ctx.SetStatus(http.StatusOK)
	err := out.say("samples", page.Next, page)
	said := s.Now()
	for err == nil {
		in.From = page.Next
		// If the run is over, it was so before the next look, which therefore sees everything.
		part, over, failed := s.record.ProfileProgress(ctx.Context(), id)
		if failed != nil {
			s.broken(ctx, id, failed)
			return
		}
		switch {
		case page.More || part > in.From:
			if page, err = s.page(ctx.Context(), id, in); err != nil {
				s.broken(ctx, id, err)
				return
			}
			err = out.say("samples", page.Next, page)
			said = s.Now()
			continue
		case over:
			_ = out.say("end", in.From, struct{}{}) // fails only if the client is gone
			return
		case s.Now().Sub(said) >= aliveEvery:
			said = s.Now()
			err = out.write(": still here\n\n")
		}
		select {
		case <-ctx.Context().Done():
			return
		case <-stopping(ctx.Context()):
			return
		case <-time.After(sampledEvery):
		}
	}
}

// broken logs why a stream breaks off: the client comes back, and is told.
func (s *profileHandlers) broken(ctx huma.Context, id bench.RunID, err error) {
	if ctx.Context().Err() == nil {
		s.Log.WarnContext(ctx.Context(), "a stream of samples broke off", "run", id, "error", err, "request_id", requestID(ctx.Context()))
	}
}

// events writes server-sent events.
type events struct {
	w          http.ResponseWriter
	connection *http.ResponseController
}

func (e events) say(event string, id int, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return e.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, event, text))
}

func (e events) write(text string) error {
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.connection.Flush()
}
