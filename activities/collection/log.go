package collection

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// maxPendingLog limits the pending output of a run while the API is
// unreachable: the kept output of two commands that print without end.
const maxPendingLog = 2 * measure.DefaultOutputLimit

// maxTail limits the end of the output that is recorded with the run, in bytes.
const maxTail = 4 << 10

// runLog is a writer that sends a run's output to the API. Writes never block;
// output that does not fit is dropped and its amount reported.
type runLog struct {
	api API
	run bench.RunID

	mu      sync.Mutex
	pending []byte
	last    []byte
	dropped int

	offset int64 // only used by ship and flush, never concurrently
}

func newLog(api API, run bench.RunID) *runLog { return &runLog{api: api, run: run} }

func (l *runLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p...)
	if extra := len(l.last) - maxTail; extra > 0 {
		l.last = append(l.last[:0], l.last[extra:]...)
	}
	if room := maxPendingLog - len(l.pending); len(p) > room {
		l.dropped += len(p) - room
		l.pending = append(l.pending, p[:room]...)
		return len(p), nil
	}
	l.pending = append(l.pending, p...)
	return len(p), nil
}

func (l *runLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.last)
}

// ship sends pending output at every interval until the context ends.
func (l *runLog) ship(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.flush(ctx)
		}
	}
}

// flush sends pending output once. On failure it stays pending: output is worth
// a retry, but never a failed run.
func (l *runLog) flush(ctx context.Context) {
	l.mu.Lock()
	kept, dropped := l.pending, l.dropped
	piece := slices.Clip(kept)
	if dropped > 0 {
		piece = fmt.Appendf(piece, "\n== %d bytes of output were dropped: they came faster than they could be sent\n", dropped)
	}
	l.pending, l.dropped = nil, 0
	l.mu.Unlock()
	if len(piece) == 0 {
		return
	}
	next, err := l.api.AppendLog(ctx, l.run, l.offset, piece)
	if err == nil {
		l.offset = next
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending, l.dropped = append(kept, l.pending...), l.dropped+dropped
	if extra := len(l.pending) - maxPendingLog; extra > 0 {
		l.pending, l.dropped = l.pending[:maxPendingLog], l.dropped+extra
	}
}
