package dispatch

import (
	"context"
	"errors"
	"sync"
)

// Fills joins the fills of one process that would find the same. Calls that want to fill a
// task queue while a fill of it goes on share one fill afterwards, which sees what each of
// them has written. A burst of ends thus costs two fills instead of one each, which would
// wait for each other at the task queue's lock. The zero value is ready to use.
type Fills struct {
	mu     sync.Mutex
	queues map[string]*joined
}

// joined holds the fills of one task queue.
type joined struct {
	users int           // calls that wait for or make a fill
	turn  chan struct{} // holds an element while a fill goes on
	next  *fill         // has not begun; nil: none waits
}

// fill is a fill that several calls wait for.
type fill struct {
	done chan struct{}
	err  error
}

// one makes a fill, or waits for another call's fill that has not begun yet.
func (f *Fills) one(ctx context.Context, taskQueue string, do func(context.Context) error) error {
	q := f.enter(taskQueue)
	defer f.leave(taskQueue, q)
	for {
		own, mine := f.join(q)
		if mine {
			f.lead(ctx, q, own, do)
			return own.err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-own.done:
		}
		// The caller that made it may have given up.
		if ctx.Err() == nil && (errors.Is(own.err, context.Canceled) || errors.Is(own.err, context.DeadlineExceeded)) {
			continue
		}
		return own.err
	}
}

// lead makes a fill for all that have joined it until it begins.
func (f *Fills) lead(ctx context.Context, q *joined, own *fill, do func(context.Context) error) {
	defer close(own.done)
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
		f.begin(q)
		own.err = do(ctx)
	case <-ctx.Done():
		f.begin(q)
		own.err = context.Cause(ctx)
	}
}

func (f *Fills) enter(taskQueue string) *joined {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queues == nil {
		f.queues = make(map[string]*joined)
	}
	q := f.queues[taskQueue]
	if q == nil {
		q = &joined{turn: make(chan struct{}, 1)}
		f.queues[taskQueue] = q
	}
	q.users++
	return q
}

func (f *Fills) leave(taskQueue string, q *joined) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(f.queues, taskQueue)
	}
}

// join returns the next fill, and whether the caller has to make it.
func (f *Fills) join(q *joined) (next *fill, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.next == nil {
		q.next = &fill{done: make(chan struct{})}
		return q.next, true
	}
	return q.next, false
}

// begin lets later calls wait for another fill.
func (f *Fills) begin(q *joined) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.next = nil
}
