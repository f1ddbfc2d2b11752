package orchestration

import (
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// noticeEvery is the time within which a request hears at most once of ended jobs of its
// batch, since it then counts them all. It hears of the last job's end immediately.
const noticeEvery = 3 * time.Second

// notices decides when the requests of batches hear of ended jobs. A notice lost with a killed
// process is made up for by the next end, or when the request counts on its own.
type notices struct {
	// after calls a function later; nil: [time.AfterFunc].
	after func(time.Duration, func())

	mu   sync.Mutex
	told map[bench.RequestID]*notice // within the last noticeEvery
}

// notice holds the next notice for a request that has just heard; nil: none.
type notice struct{ next func() }

// later reports whether tell was put off because the request has just heard: it then hears of
// this end together with those that follow.
func (n *notices) later(request bench.RequestID, tell func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := n.told[request]; last != nil {
		last.next = tell
		return true
	}
	if n.told == nil {
		n.told = make(map[bench.RequestID]*notice)
	}
	n.told[request] = &notice{}
	n.wait(request)
	return false
}

// wait tells, after noticeEvery, what was put off.
func (n *notices) wait(request bench.RequestID) {
	after := n.after
	if after == nil {
		after = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	after(noticeEvery, func() {
		if tell := n.due(request); tell != nil {
			tell()
		}
	})
}

func (n *notices) due(request bench.RequestID) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	tell := n.told[request].next
	if tell == nil {
		delete(n.told, request)
		return nil
	}
	n.told[request].next = nil
	n.wait(request)
	return tell
}
