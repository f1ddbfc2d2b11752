package main

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	// busyPercent is the allowed growth of a busy API's heap beyond the live part before garbage is
	// collected: less often than usual, which takes a tenth off the CPU time of comparisons
	// and histories. GOMEMLIMIT bounds it all the same. An API that computes nothing keeps to
	// the usual, and needs less memory.
	busyPercent = 300
	// calmAfter is the time for which an API counts as busy after a computation.
	calmAfter = 2 * time.Second
)

// garbage makes the collection of garbage rarer while the API computes. [newGarbage] makes one.
type garbage struct {
	set func(percent int) (before int) // as debug.SetGCPercent

	mu      sync.Mutex
	busy    bool
	relaxed bool
	usual   int
	calming *time.Timer
}

func newGarbage() *garbage { return &garbage{set: debug.SetGCPercent} }

// computes tells that computations begin, or that the last one has ended.
func (g *garbage) computes(busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = busy
	switch {
	case busy && !g.relaxed:
		g.usual = g.set(busyPercent)
		if g.usual < 0 || g.usual > busyPercent {
			g.set(g.usual) // already set to collect even less often
			return
		}
		g.relaxed = true
	case !busy && g.relaxed && g.calming == nil:
		g.calming = time.AfterFunc(calmAfter, g.calm)
	case !busy && g.relaxed:
		g.calming.Reset(calmAfter)
	}
}

// calm returns to the usual unless there are computations again.
func (g *garbage) calm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy && g.relaxed {
		g.set(g.usual)
		g.relaxed = false
	}
}
