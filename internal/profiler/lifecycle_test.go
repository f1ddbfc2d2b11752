package profiler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

func TestP01ADisabledAgentDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, change := range map[string]func(*profiler.Config){
			"disabled":        func(c *profiler.Config) { c.Enabled = false },
			"without a kind":  func(c *profiler.Config) { c.SystemMetrics, c.Timings = false, false },
			"nothing but off": func(c *profiler.Config) { *c = profiler.Config{} },
		} {
			untouched := &source{collect: func() (profiler.Collected, error) { panic("collected") }}
			got := &receiver{}
			c := config(got, untouched)
			change(&c)
			a := newAgent(t, c)
			a.Start(t.Context())
			require.NoError(t, a.UpdateBatch(5), name)
			require.NoError(t, a.UpdateBatch(3), "%s: nothing is checked", name)
			phase(a, "fetch")
			// Were there a goroutine or a timer, this would wait for it.
			synctest.Wait()
			time.Sleep(time.Hour)
			require.Equal(t, profiler.Totals{}, a.End(), name)
			require.Empty(t, got.tried(), name)
			require.Zero(t, untouched.closed, name)
		}
	})
}

// kinds runs an agent for a while and tells what it recorded.
func kinds(t *testing.T, change func(*profiler.Config)) (system, timings bool) {
	t.Helper()
	got := &receiver{}
	c := config(got, memory())
	change(&c)
	a := newAgent(t, c)
	a.Start(t.Context())
	time.Sleep(time.Second)
	phase(a, "fetch")
	a.End()
	return len(got.batches(profiler.ScopeJob, memoryUsed)) > 0, len(got.batches(profiler.ScopeTiming, "fetch")) > 0
}

func TestP02WhatIsEnabledFollowsFromConfigurationAndRanks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, configured := range []bool{false, true} {
			for _, local := range []int{0, 1} {
				for _, global := range []int{0, 1} {
					system, timings := kinds(t, func(c *profiler.Config) {
						c.Enabled, c.LocalRank, c.GlobalRank = configured, local, global
					})
					require.Equal(t, configured && local == 0, system, "configured %t, local rank %d, global rank %d", configured, local, global)
					require.Equal(t, configured && global == 0, timings, "configured %t, local rank %d, global rank %d", configured, local, global)
				}
			}
		}
		system, timings := kinds(t, func(c *profiler.Config) { c.Timings = false })
		require.True(t, system)
		require.False(t, timings)
		system, timings = kinds(t, func(c *profiler.Config) { c.SystemMetrics = false })
		require.False(t, system)
		require.True(t, timings)
	})
}

func TestP03AnAgentOfNeitherFirstRankIsDisabled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		c := config(got, &source{collect: func() (profiler.Collected, error) { panic("collected") }})
		c.LocalRank, c.GlobalRank = 1, 5
		a := newAgent(t, c)
		a.Start(t.Context())
		require.NoError(t, a.UpdateBatch(5))
		require.NoError(t, a.UpdateBatch(3))
		phase(a, "fetch")
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Equal(t, profiler.Totals{}, a.End())
		require.Empty(t, got.tried())
	})
}

func TestP04BothKindsAreActiveTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		c := config(got, memory())
		c.StartOnBatch, c.EndAfterBatch = 2, pointer(4)
		a := newAgent(t, c)
		a.Start(t.Context())
		for index := range 7 {
			require.NoError(t, a.UpdateBatch(index))
			time.Sleep(450 * time.Millisecond)
			phase(a, "measure")
		}
		a.End()
		require.Equal(t, []int{2, 3, 4}, got.indexes(profiler.ScopeTiming, "measure"))
		indexes := got.indexes(profiler.ScopeJob, memoryUsed)
		require.Equal(t, 2, indexes[0])
		require.Equal(t, 4, indexes[len(indexes)-1])
	})
}

func TestP05AnAgentIsInactiveBeforeItsFirstBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			start int
			moves []int
			first int // the first recorded index
		}{
			"from the beginning":  {start: 0, moves: []int{1, 2}, first: 0},
			"reached":             {start: 3, moves: []int{1, 2, 3, 4}, first: 3},
			"passed over":         {start: 3, moves: []int{1, 7, 8}, first: 7},
			"repeated":            {start: 1, moves: []int{0, 0, 1, 1}, first: 1},
			"passed in one leap":  {start: 3, moves: []int{1000}, first: 1000},
			"never reached":       {start: 3, moves: []int{1, 2}, first: -1},
			"nothing ever begins": {start: 1, first: -1},
		} {
			got := &receiver{}
			conf := config(got, memory())
			conf.StartOnBatch = c.start
			a := newAgent(t, conf)
			a.Start(t.Context())
			time.Sleep(time.Second)
			for _, index := range c.moves {
				require.NoError(t, a.UpdateBatch(index), name)
				time.Sleep(time.Second)
			}
			a.End()
			indexes := got.indexes(profiler.ScopeJob, memoryUsed)
			if c.first < 0 {
				require.Empty(t, indexes, name)
				require.Empty(t, got.tried(), name)
				continue
			}
			require.Equal(t, c.first, indexes[0], name)
		}
	})
}

func TestP06AnAgentIsActiveUpToItsLastBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			end   *int
			moves []int
			last  int // the last recorded index
		}{
			"at the end, not above it": {end: pointer(3), moves: []int{1, 2, 3, 4, 5}, last: 3},
			"a leap over the end":      {end: pointer(3), moves: []int{1, 2, 100}, last: 2},
			"a window of one":          {end: pointer(1), moves: []int{1, 2}, last: 1},
			"a leap over the window":   {end: pointer(3), moves: []int{5}, last: -1},
			"without an end":           {moves: []int{1, 2, 3, 4, 500}, last: 500},
		} {
			got := &receiver{}
			conf := config(got, memory())
			conf.StartOnBatch, conf.EndAfterBatch = 1, c.end
			a := newAgent(t, conf)
			a.Start(t.Context())
			for _, index := range c.moves {
				require.NoError(t, a.UpdateBatch(index), name)
				time.Sleep(time.Second)
			}
			a.End()
			indexes := got.indexes(profiler.ScopeJob, memoryUsed)
			if c.last < 0 {
				require.Empty(t, indexes, name)
				continue
			}
			require.Equal(t, c.last, indexes[len(indexes)-1], name)
		}
	})
}

func TestP07ImpossibleWindowsAndDecreasingIndexesAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for text, settings := range map[string]profiler.Settings{
			"end_after_batch 2 is before start_on_batch 3":  {StartOnBatch: 3, EndAfterBatch: pointer(2)},
			"start_on_batch is -1; batches count from 0":    {StartOnBatch: -1},
			"end_after_batch -1 is before start_on_batch 0": {EndAfterBatch: pointer(-1)},
		} {
			require.ErrorContains(t, settings.Check(), text)
			c := config(&receiver{})
			c.StartOnBatch, c.EndAfterBatch = settings.StartOnBatch, settings.EndAfterBatch
			_, err := profiler.New(c)
			require.ErrorContains(t, err, text)
		}
		require.NoError(t, profiler.Settings{StartOnBatch: 3, EndAfterBatch: pointer(3)}.Check())

		got := &receiver{}
		a := newAgent(t, config(got, memory()))
		a.Start(t.Context())
		synctest.Wait() // for the first sample
		require.NoError(t, a.UpdateBatch(3))
		var decreasing *profiler.IndexError
		require.ErrorAs(t, a.UpdateBatch(2), &decreasing)
		require.Equal(t, profiler.IndexError{From: 3, To: 2}, *decreasing)
		require.EqualError(t, decreasing, "the batch index is 3 and cannot become 2: it never decreases")
		time.Sleep(250 * time.Millisecond)
		a.End()
		require.Equal(t, []int{0, 3, 3, 3}, got.indexes(profiler.ScopeJob, memoryUsed), "and changes nothing")
	})
}

func TestP08TheLimitCountsFromActivationAndIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		c := config(got, memory())
		c.StartOnBatch = 1
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(time.Hour) // of fetching
		activated := time.Now()
		require.NoError(t, a.UpdateBatch(1))
		for index := range 20 {
			time.Sleep(time.Minute)
			require.NoError(t, a.UpdateBatch(2+index))
			phase(a, "measure")
		}
		a.End()
		times := got.times(profiler.ScopeJob, memoryUsed)
		require.Len(t, times, 3000)
		require.True(t, times[0].Equal(activated))
		require.Equal(t, 5*time.Minute-profiler.Interval, times[len(times)-1].Sub(activated))
		require.Len(t, got.values(profiler.ScopeTiming, "measure"), 4)
	})
}

func TestP09AnAgentIsActiveOnceWhateverTheOrderOfCalls(t *testing.T) {
	t.Parallel()
	t.Run("start twice", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			got := &receiver{}
			a := newAgent(t, config(got, memory()))
			a.Start(t.Context())
			a.Start(t.Context())
			time.Sleep(950 * time.Millisecond)
			a.Start(t.Context())
			first := a.End()
			require.EqualValues(t, 11, first.Sent)
			require.Equal(t, first, a.End(), "end twice")
			a.Start(t.Context())
			require.NoError(t, a.UpdateBatch(7))
			phase(a, "upload")
			time.Sleep(time.Minute)
			require.Equal(t, first, a.End(), "never active again")
		})
	})
	t.Run("end before start", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			got := &receiver{}
			a := newAgent(t, config(got, memory()))
			a.End()
			a.Start(t.Context())
			phase(a, "fetch")
			time.Sleep(time.Minute)
			require.Equal(t, profiler.Totals{}, a.End())
			require.Empty(t, got.tried())
		})
	})
	t.Run("a window that is over before start", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			got := &receiver{}
			c := config(got, memory())
			c.EndAfterBatch = pointer(3)
			a := newAgent(t, c)
			require.NoError(t, a.UpdateBatch(4))
			a.Start(t.Context())
			time.Sleep(time.Minute)
			require.Equal(t, profiler.Totals{}, a.End())
			require.Empty(t, got.tried())
		})
	})
	t.Run("the limit and the caller at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			got := &receiver{}
			a := newAgent(t, config(got, memory()))
			a.Start(t.Context())
			time.Sleep(profiler.MaxActive)
			var ends sync.WaitGroup
			for range 5 {
				ends.Go(func() { a.End() })
			}
			ends.Wait()
			require.EqualValues(t, 3000, a.End().Sent)
		})
	})
	t.Run("everything at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			for round := range 20 {
				got := &receiver{answer: func(context.Context, profiler.Upload) error {
					if round%3 == 0 {
						return profiler.ErrRefused
					}
					return nil
				}}
				c := config(got, memory(), processor())
				c.EndAfterBatch = pointer(round)
				a := newAgent(t, c)
				ctx, cancel := context.WithCancel(t.Context())
				var calls sync.WaitGroup
				for worker := range 6 {
					calls.Go(func() {
						for n := range 50 {
							switch (worker + n) % 6 {
							case 0:
								a.Start(ctx)
							case 1, 2:
								_ = a.UpdateBatch(n / 5) // decreases at times
							case 3:
								phase(a, fmt.Sprint("phase ", n%40))
							case 4:
								time.Sleep(7 * time.Millisecond)
							case 5:
								if n > 40 && worker == 0 {
									cancel()
								}
								if n > 45 {
									a.End()
								}
							}
						}
					})
				}
				calls.Wait()
				a.End()
				cancel()
			}
		})
	})
}
