package api

import (
	"net/http"
	"time"
)

const (
	// defaultStall is the time in which a client has to take the next piece of an answer.
	defaultStall = 30 * time.Second
	// pieceBytes is the size of a piece: small, so that a slow client that takes something
	// is told from one that takes nothing.
	pieceBytes = 64 << 10
	// strayBound bounds the time in which a body that no handler reads must arrive.
	strayBound = headerBound
)

// statusWriter remembers the status, and drops clients that take nothing of an answer.
// Unwrap gives access to the server's own writer. Deadlines follow the real clock; they do
// nothing on a writer without a connection.
type statusWriter struct {
	http.ResponseWriter
	status     int
	connection *http.ResponseController
	stall      time.Duration
	extended   time.Time
}

// newStatusWriter begins an answer, and removes what was left of the deadlines of an earlier one
// on the same connection.
func newStatusWriter(w http.ResponseWriter, r *http.Request, stall time.Duration) *statusWriter {
	out := &statusWriter{ResponseWriter: w, connection: http.NewResponseController(w), stall: stall}
	_ = out.connection.SetWriteDeadline(time.Time{})
	if r.ContentLength != 0 {
		_ = out.connection.SetReadDeadline(time.Now().Add(strayBound))
	}
	return out
}

// extend gives the client time for the next piece.
func (w *statusWriter) extend() {
	if now := time.Now(); now.Sub(w.extended) > w.stall/10 {
		w.extended = now
		_ = w.connection.SetWriteDeadline(now.Add(w.stall))
	}
}

// end gives the client time for what the server still holds of the answer.
func (w *statusWriter) end() {
	w.extended = time.Time{}
	w.extend()
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (written int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for {
		piece := p[:min(len(p), pieceBytes)]
		w.extend()
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
