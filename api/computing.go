package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/store"
)

// Bounds of computations: comparisons and histories, for pages or for clients. More of them than processors
// would all end later, and hold more memory meanwhile.
const (
	mostComputing = 16
	// spareComputing and computingPatience are for a single processor: one computation that has taken longer than usual does
	// not keep the others waiting.
	spareComputing    = 1
	computingPatience = 100 * time.Millisecond
	// computingLine bounds the waiting computations of callers with a token, and as many of callers without; one caller has
	// half of them at most. Those of a large project take some hundredths of a second each: later callers are told
	// immediately to come back.
	computingLine = 64
	// computingWait bounds the wait: until then, a person waits for a page without wondering.
	computingWait = 2 * time.Second
)

// Reasons for which a computation is refused, in metrics.
const (
	refusedAtOnce  = "line"
	refusedWaiting = "wait"
)

// computingPlaces returns the default bound of concurrent computations, and how many long ones do not count towards it.
func computingPlaces() (most, spare int) {
	most = min(runtime.GOMAXPROCS(0), mostComputing)
	return most, max(0, 1+spareComputing-most)
}

// computing bounds the concurrent computations, besides some that take long; others wait in a line. A place that becomes
// free goes to the caller with the fewest, then to the one that has waited longest.
type computing struct {
	most, spare, line int
	// refused counts refused computations, by reason; waited records how long the others waited.
	refused func(reason string)
	waited  func(time.Duration)
	// busy is told when a computation begins while none is under way, and when the last one
	// has ended; it is called under the lock.
	busy func(bool)

	mu      sync.Mutex
	under   int
	long    int            // of under, those that take long
	told    bool           // that computations are under way
	of      map[string]int // under way, by caller
	waiting []*waiter      // the longest first
	late    int            // refused so far
}

// waiter is a computation in the line.
type waiter struct {
	caller   string
	stranger bool
	place    chan struct{} // closed when the waiter gets a place
}

func newComputing(most, spare, line int, refused func(string), waited func(time.Duration), busy func(bool)) *computing {
	return &computing{most: most, spare: spare, line: line, refused: refused, waited: waited, busy: busy, of: make(map[string]int)}
}

// enter waits for a place, which leave gives back. The error is [busyComputing], immediately if the line is full.
func (c *computing) enter(ctx context.Context, caller string, stranger bool) (leave func(), err error) {
	begun := time.Now()
	c.mu.Lock()
	if c.free() { // then nobody waits
		c.begin(caller)
		c.tell()
		c.mu.Unlock()
		c.waited(0)
		return c.leaving(caller), nil
	}
	alike, own := 0, 0
	for _, w := range c.waiting {
		if w.stranger == stranger {
			alike++
		}
		if w.caller == caller {
			own++
		}
	}
	if alike >= c.line || own >= max(1, c.line/2) {
		defer c.mu.Unlock()
		return nil, c.refuse(refusedAtOnce)
	}
	w := &waiter{caller, stranger, make(chan struct{})}
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()

	wait := time.NewTimer(computingWait)
	defer wait.Stop()
	select {
	case <-w.place:
	case <-wait.C:
	case <-ctx.Done():
	case <-stopping(ctx):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.waiting, w); at >= 0 { // it has no place
		c.waiting = slices.Delete(c.waiting, at, at+1)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, c.refuse(refusedWaiting)
	}
	c.waited(time.Since(begun))
	return c.leaving(caller), nil
}

// free reports whether there is a free place. It is called under the lock, as are begin, refuse, next and tell.
func (c *computing) free() bool { return c.under-min(c.long, c.spare) < c.most }

// begin counts a computation.
func (c *computing) begin(caller string) {
	c.under++
	c.of[caller]++
}

// refuse asks callers to come back, not all at the same time.
func (c *computing) refuse(reason string) error {
	c.refused(reason)
	c.late++
	const soonest, apart = 2, 4 // seconds
	return busyComputing(soonest + c.late%apart)
}

// leaving returns a function that gives a place back, once.
func (c *computing) leaving(caller string) func() {
	long, left := false, false
	patience := time.AfterFunc(computingPatience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !left {
			long = true
			c.long++
			c.next()
		}
	})
	return sync.OnceFunc(func() {
		patience.Stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		left = true
		c.under--
		if long {
			c.long--
		}
		if c.of[caller]--; c.of[caller] == 0 {
			delete(c.of, caller)
		}
		c.next()
		c.tell()
	})
}

// tell tells busy whether computations are under way, if that has changed.
func (c *computing) tell() {
	if busy := c.under > 0; busy != c.told {
		c.told = busy
		c.busy(busy)
	}
}

// next gives a free place to a waiter.
func (c *computing) next() {
	if len(c.waiting) == 0 || !c.free() {
		return
	}
	at := 0
	for i, w := range c.waiting {
		if c.of[w.caller] < c.of[c.waiting[at].caller] {
			at = i
		}
	}
	w := c.waiting[at]
	c.waiting = slices.Delete(c.waiting, at, at+1)
	c.begin(w.caller)
	close(w.place)
}

// busyComputing asks to come back after some seconds.
func busyComputing(seconds int) error {
	return huma.ErrorWithHeaders(problemf(http.StatusServiceUnavailable, "busy", "more comparisons and histories are asked for than this service can make at once; try again in %d seconds", seconds),
		http.Header{"Retry-After": {strconv.Itoa(seconds)}})
}

// compute waits for a place among the computations. A page keeps its place, for further calls as well, until it is
// written.
func (s *base) compute(ctx context.Context) (leave func(), err error) {
	page := pageOf(ctx)
	if page.computes() {
		return func() {}, nil
	}
	who, stranger := sharer(ctx)
	if leave, err = s.computing.enter(ctx, who, stranger); err != nil || page == nil {
		return leave, err
	}
	page.keep(leave)
	return func() {}, nil
}

// sharer returns the name under which a caller's share is bounded; those without a token are strangers.
func sharer(ctx context.Context) (who string, stranger bool) {
	if p := caller(ctx); p != (store.Principal{}) {
		return fmt.Sprint(p.Kind, " ", p.Owner, " ", p.Collector), false
	}
	return network(client(ctx)).String(), true
}
