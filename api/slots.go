package api

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Bounds on the concurrent calls of an operation, for callers with a token and as many for
// those without; one caller has half of them at most. They bound what slow clients hold:
// memory and database connections.
const (
	exportSlots  = 8   // each holds a page of collections
	compareSlots = 8   // which share the memory of comparisons
	suiteSlots   = 8   // each holds an archive of up to MaxSuite
	chunkSlots   = 32  // each holds a piece of a build, 1 MiB
	outputSlots  = 128 // each holds a piece of output, or waits for some
	blockSlots   = 8   // each holds a body of up to MaxBlock, and what it says
	largeSlots   = 64  // each holds a body of up to MaxBody
)

// slotWait bounds the wait for a slot, before the client is asked to come back.
const slotWait = 10 * time.Second

// slots are taken while a call is under way.
type slots struct {
	most, each int
	// line bounds the calls that wait, and patience how long.
	line     int
	patience time.Duration

	mu    sync.Mutex
	taken map[string]int // by caller
	total int
	waits int
	freed chan struct{} // closed when a slot becomes free
}

func newSlots(most int) *slots {
	return &slots{most: most, each: max(1, most/2), line: math.MaxInt, patience: slotWait, taken: make(map[string]int), freed: make(chan struct{})}
}

// newComputedSlots returns slots of computed calls: a caller that waits for one waits for others to take their answers, and
// then for a place among the computations.
func newComputedSlots(most int) *slots {
	s := newSlots(most)
	s.line, s.patience = computingLine, computingWait
	return s
}

// take waits for a slot. It returns false if there is none in time.
func (s *slots) take(ctx context.Context, caller string) bool {
	wait := time.NewTimer(s.patience)
	defer wait.Stop()
	for waits := false; ; waits = true {
		s.mu.Lock()
		if waits {
			s.waits--
		}
		if s.total < s.most && s.taken[caller] < s.each {
			s.total++
			s.taken[caller]++
			s.mu.Unlock()
			return true
		}
		if s.waits >= s.line {
			s.mu.Unlock()
			return false
		}
		s.waits++
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
			continue
		case <-wait.C:
		case <-ctx.Done():
		case <-stopping(ctx):
		}
		s.mu.Lock()
		s.waits--
		s.mu.Unlock()
		return false
	}
}

func (s *slots) free(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.taken[caller]--; s.taken[caller] == 0 {
		delete(s.taken, caller)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// inSlot lets a number of callers with a token, and as many without, into an operation at
// once, until their answers are taken. It runs after authorize. Pages take computed answers
// immediately, and need no slot for them.
func (s *base) inSlot(most int, computes bool) func(ctx huma.Context, next func(huma.Context)) {
	known, strangers := newSlots(most), newSlots(most)
	if computes {
		known, strangers = newComputedSlots(most), newComputedSlots(most)
	}
	return func(ctx huma.Context, next func(huma.Context)) {
		if computes && pageOf(ctx.Context()) != nil {
			next(ctx)
			return
		}
		who, stranger := sharer(ctx.Context())
		in := known
		if stranger {
			in = strangers
		}
		if !in.take(ctx.Context(), who) {
			s.refuse(ctx, busy())
			return
		}
		defer in.free(who)
		next(ctx)
	}
}

// busy asks a client to come back when others have taken their answers.
func busy() error {
	return huma.ErrorWithHeaders(problemf(http.StatusServiceUnavailable, "busy", "too many calls of this kind are under way; try again in a few seconds"),
		http.Header{"Retry-After": {"2"}})
}
