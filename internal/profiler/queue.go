package profiler

import "sync"

const (
	// maxUploads and maxQueued bound the queue for the network: more than two minutes of a usual machine, and some 10 MB at most.
	maxUploads = 16
	maxQueued  = 250_000
)

// queue holds uploads until they are sent. Putting never waits.
type queue struct {
	mu      sync.Mutex
	waiting []Upload
	points  int
	closed  bool
	// changed has a token after each change that the taker should look at.
	changed chan struct{}
}

func newQueue() *queue { return &queue{changed: make(chan struct{}, 1)} }

// put adds an upload and reports whether there was room for it.
func (q *queue) put(u Upload) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := u.Values()
	if q.closed || len(q.waiting) >= maxUploads || q.points+n > maxQueued {
		return false
	}
	q.waiting = append(q.waiting, u)
	q.points += n
	q.signal()
	return true
}

// close tells the taker that no more uploads will come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// next removes the oldest upload. If there is none, more tells whether one may still come.
func (q *queue) next() (u Upload, ok, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return Upload{}, false, !q.closed
	}
	u = q.waiting[0]
	q.waiting[0] = Upload{} // so that its memory is free
	q.waiting = q.waiting[1:]
	q.points -= u.Values()
	return u, true, true
}
