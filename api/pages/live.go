package pages

import (
	"fmt"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

const (
	// askLate delays a stream's next question after the last revision may have changed: a
	// little, so that all who follow a subject ask right after the one that reads.
	askLate = 10 * time.Millisecond
	// sayEvery is the interval of signs of life, so that a page notices a broken stream.
	sayEvery = 15 * time.Second
	// maxStream bounds a stream. The browser begins another one, with its present token.
	maxStream = 10 * time.Minute
	// maxStreams bounds the streams of a process; beyond it, pages are up to date when they
	// are loaded.
	maxStreams = 400
)

// live counts the streams.
type live struct{ places chan struct{} }

func newLive() *live { return &live{make(chan struct{}, maxStreams)} }

// follow sends the revision of a subject whenever it changes, as server-sent events. A
// client that comes back says what it has seen last, and misses nothing.
func (p *Pages) follow(w http.ResponseWriter, r *http.Request) {
	refuse := func(problem *apiclient.Problem) {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, problem.Detail, max(problem.Status, http.StatusBadRequest))
	}
	v, err := p.visit(r, []string{"subject", "since"})
	if err == nil {
		err = v.checkParameters()
	}
	var now apiclient.Revision
	if err == nil {
		now, err = v.api.Revision(r.Context(), v.get("subject"))
	}
	if err != nil {
		refuse(problemOf(err))
		return
	}
	select {
	case p.live.places <- struct{}{}:
		defer func() { <-p.live.places }()
	default:
		refuse(&apiclient.Problem{Status: http.StatusServiceUnavailable, Detail: "too many pages are being updated; load this one again when you need it"})
		return
	}
	seen := v.get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		seen = last
	}
	s := stream{w, http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	if err := s.say("retry: 2000\n\n"); err != nil {
		return
	}
	p.send(v, s, seen, now)
}

// send sends revisions until the client goes, the server stops, or the stream is old.
func (p *Pages) send(v *visit, s stream, seen string, now apiclient.Revision) {
	end := time.NewTimer(maxStream)
	defer end.Stop()
	said := p.Now()
	for {
		var err error
		switch {
		case now.Revision != seen:
			seen, said = now.Revision, p.Now()
			err = s.say(fmt.Sprintf("id: %s\nevent: revision\ndata: %s\n\n", seen, seen))
		case p.Now().Sub(said) >= sayEvery:
			said = p.Now()
			err = s.say(": still here\n\n")
		}
		if err != nil {
			return
		}
		select {
		case <-v.Context().Done():
			return
		case <-p.stopping(v.Context()):
			return
		case <-end.C:
			return
		case <-time.After(time.Duration(now.FreshSeconds*float64(time.Second)) + askLate):
		}
		if now, err = v.api.Revision(v.Context(), v.get("subject")); err != nil {
			return // the client asks again and is told why
		}
	}
}

// stream is an answer that goes on.
type stream struct {
	w          http.ResponseWriter
	connection *http.ResponseController
}

func (s stream) say(text string) error {
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.connection.Flush()
}
