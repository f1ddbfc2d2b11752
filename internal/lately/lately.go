// Package lately answers at once what takes long to read and may be some seconds old, such
// as counts of very many jobs on a page: whoever asks gets what was read last, while it is
// read again.
//
// Only answers that took much are kept. Others are read each time, so that what is small
// is exact. The package must not know what it keeps.
package lately

import (
	"context"
	"maps"
	"sync"
	"time"
)

const (
	// Fresh is the age up to which a kept answer is given as it is, at least. Reading it
	// again takes at most one part of restful of the time.
	Fresh   = 2 * time.Second
	restful = 40
	// Usable is the age up to which one is given while it is read again. Nobody gets an
	// older one.
	Usable = 20 * time.Second
	// atOnce bounds how many read at once: many who ask for the first time must not keep each
	// other from an answer.
	atOnce = 2
	// readBound bounds a reading that nobody waits for.
	readBound = time.Minute
)

// Cache keeps answers by what was asked. It is safe for concurrent use. An answer is given
// to several callers, who must not change it.
type Cache[K comparable, V any] struct {
	now    func() time.Time
	read   func(ctx context.Context, key K) (V, error)
	much   func(V) bool
	mu     sync.Mutex
	known  map[K]*answer[V]
	places chan struct{}  // of those who read while somebody waits
	behind sync.WaitGroup // readings that nobody waits for
}

type answer[V any] struct {
	value   V
	at      time.Time // when its reading began
	fresh   time.Duration
	reading bool // again, with nobody waiting
}

// New returns a cache of what read returns. Answers of which much is true are kept; now is
// the clock.
func New[K comparable, V any](now func() time.Time, read func(ctx context.Context, key K) (V, error), much func(V) bool) *Cache[K, V] {
	return &Cache[K, V]{now: now, read: read, much: much, known: make(map[K]*answer[V]), places: make(chan struct{}, atOnce)}
}

// Get returns the answer, at most [Usable] old.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	if value, ok := c.recall(ctx, key); ok {
		return value, nil
	}
	select {
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
	// Whoever read before may have found that it is much.
	if value, ok := c.recall(ctx, key); ok {
		return value, nil
	}
	return c.look(ctx, key)
}

// recall returns a kept answer, and has an old one read again.
func (c *Cache[K, V]) recall(ctx context.Context, key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ok := c.known[key]
	if !ok {
		return value, false
	}
	age := c.now().Sub(kept.at)
	if age >= Usable {
		return value, false
	}
	if age >= kept.fresh && !kept.reading {
		kept.reading = true
		behind, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBound)
		c.behind.Go(func() {
			defer cancel()
			if _, err := c.look(behind, key); err != nil {
				c.mu.Lock()
				kept.reading = false // the next one tries, and is told once this is too old
				c.mu.Unlock()
			}
		})
	}
	return kept.value, true
}

// look reads the answer, and keeps it if that was much.
func (c *Cache[K, V]) look(ctx context.Context, key K) (V, error) {
	at := c.now()
	value, err := c.read(ctx, key)
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if former, ok := c.known[key]; ok && former.at.After(at) {
		return value, nil
	}
	if !c.much(value) {
		delete(c.known, key)
		return value, nil
	}
	maps.DeleteFunc(c.known, func(_ K, a *answer[V]) bool { return at.Sub(a.at) >= Usable })
	fresh := min(max(Fresh, restful*c.now().Sub(at)), Usable/2)
	c.known[key] = &answer[V]{value: value, at: at, fresh: fresh}
	return value, nil
}

// Wait waits for the readings that nobody waits for. Call it when nobody asks any more.
func (c *Cache[K, V]) Wait() { c.behind.Wait() }
