package profiler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sendWithin bounds one attempt to send, retryAfter is the pause before the second and last one.
	sendWithin = 10 * time.Second
	retryAfter = time.Second
	// logEvery bounds how often the same kind of failure is logged.
	logEvery = time.Minute
)

// shipping sends uploads one after the other. A failure costs one upload and never the next.
type shipping struct {
	sender  Sender
	queue   *queue
	totals  *counts
	log     *slog.Logger
	trouble rate.Sometimes
	// vain is set once nobody takes uploads.
	vain bool
}

// counts are the totals of an agent.
type counts struct{ sent, dropped, failed atomic.Int64 }

// run sends until the queue is closed and empty, or the context ends.
func (s *shipping) run(ctx context.Context) {
	defer s.abandon()
	for {
		u, ok, more := s.queue.next()
		switch {
		case ctx.Err() != nil:
			s.totals.dropped.Add(int64(u.Values()))
			return
		case ok:
			s.deliver(ctx, u)
		case !more:
			return
		default:
			select {
			case <-ctx.Done():
			case <-s.queue.changed:
			}
		}
	}
}

// abandon counts the values that will not be sent any more.
func (s *shipping) abandon() {
	s.queue.close()
	for u, ok, _ := s.queue.next(); ok; u, ok, _ = s.queue.next() {
		s.totals.dropped.Add(int64(u.Values()))
	}
}

func (s *shipping) deliver(ctx context.Context, u Upload) {
	if s.vain {
		s.totals.dropped.Add(int64(u.Values()))
		return
	}
	err := s.try(ctx, u)
	if err != nil && !errors.Is(err, ErrRefused) && pause(ctx, retryAfter) {
		err = s.try(ctx, u)
	}
	if err == nil {
		s.totals.sent.Add(int64(u.Values()))
		return
	}
	s.totals.dropped.Add(int64(u.Values()))
	if errors.Is(err, ErrNoReceiver) {
		s.vain = true
		s.log.Debug("nobody takes samples of the profiler", "error", err)
		return
	}
	if ctx.Err() == nil {
		s.trouble.Do(func() {
			s.log.Warn("dropping samples of the profiler", "values", u.Values(), "error", err)
		})
	}
}

func (s *shipping) try(ctx context.Context, u Upload) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	u.DroppedTotal = s.totals.dropped.Load()
	return guarded(func() error { return s.sender.Send(ctx, u) })
}

// pause waits, and reports whether the context still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// guarded calls a function given to the agent, and turns a panic into an error: a panic must not end a run.
func guarded(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return call()
}
