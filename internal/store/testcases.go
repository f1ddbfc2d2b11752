package store

import (
	"context"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
)

// keptTestCases bounds the names of test cases that a process keeps; some 300 bytes each.
const keptTestCases = 20_000

func newTestCases() *ttlcache.Cache[int64, bench.TestCase] {
	return ttlcache.New(ttlcache.WithCapacity[int64, bench.TestCase](keptTestCases), ttlcache.WithDisableTouchOnHit[int64, bench.TestCase]())
}

// testCases returns the names of test cases by their IDs, which may repeat. A test case never
// changes, so those that were read once are kept: a name takes longer to read than most of
// what is said of it.
func (s *Store) testCases(ctx context.Context, q querier, ids []int64) (map[int64]bench.TestCase, error) {
	names := make(map[int64]bench.TestCase)
	var unknown []int64
	for i, id := range ids {
		if i > 0 && id == ids[i-1] {
			continue
		}
		if _, known := names[id]; known {
			continue
		}
		if kept := s.cases.Get(id); kept != nil {
			names[id] = kept.Value()
		} else {
			names[id] = bench.TestCase{}
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return names, nil
	}
	type row struct {
		ID int64
		bench.TestCase
	}
	found, err := all[row](ctx, q, `select id, benchmark, profile, scenario, backend, target from test_case where id = any($1)`, unknown)
	for _, r := range found {
		names[r.ID] = r.TestCase
		s.cases.Set(r.ID, r.TestCase, ttlcache.NoTTL)
	}
	return names, err
}
