package collection

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// maxPendingLog limits the pending output of a run while the API is
// unreachable: the kept output of two commands that print without end.
const maxPendingLog = 2 * measure.DefaultOutputLimit

// maxPiece limits one piece of output that is sent, in bytes: well below what proxies let
// pass by default.
const maxPiece = 256 << 10

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

	offset int64 // only used by ship, flush and rest, never concurrently
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
	l.pending, l.dropped = nil, 0
	l.mu.Unlock()
	for len(kept) > 0 {
		n := min(len(kept), maxPiece)
		if !l.send(ctx, slices.Clip(kept[:n])) {
			break
		}
		kept = kept[n:]
	}
	if len(kept) == 0 && dropped > 0 {
		if l.send(ctx, fmt.Appendf(nil, "\n== %d bytes of output were dropped: they came faster than they could be sent\n", dropped)) {
			dropped = 0
		}
	}
	if len(kept) == 0 && dropped == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending, l.dropped = append(kept, l.pending...), l.dropped+dropped
	if extra := len(l.pending) - maxPendingLog; extra > 0 {
		l.pending, l.dropped = l.pending[:maxPendingLog], l.dropped+extra
	}
}

// maxRest limits the output that is sent with the end of a run, in bytes.
const maxRest = 64 << 10

// rest returns the output that is still to be sent, if that is little and none was dropped; else
// nil. It stays pending.
func (l *runLog) rest() *apiclient.OutputPiece {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 || len(l.pending) > maxRest || l.dropped > 0 {
		return nil
	}
	return &apiclient.OutputPiece{Offset: l.offset, Data: slices.Clone(l.pending)}
}

// send sends a piece once.
func (l *runLog) send(ctx context.Context, piece []byte) bool {
	next, err := l.api.AppendLog(ctx, l.run, l.offset, piece)
	if err != nil {
		return false
	}
	l.offset = next
	return true
}
