package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// sampleOrder holds the place of each series of some sheets among the samples of an artifact.
// Artifacts that were measured alike share one.
type sampleOrder struct {
	names  []*Series
	places []int
}

// sampleOrderID identifies a sampleOrder by the sheets and their series.
type sampleOrderID [sha256.Size]byte

// keptOrdersBytes bounds the orders that a process keeps: five of 5,600 series.
const keptOrdersBytes = 1 << 19

func newKeptOrders() *ttlcache.Cache[sampleOrderID, sampleOrder] {
	return ttlcache.New(ttlcache.WithMaxCost(keptOrdersBytes, func(item ttlcache.CostItem[sampleOrderID, sampleOrder]) uint64 {
		return uint64(len(item.Key) + 16*len(item.Value.names))
	}))
}

// orderOf returns the order of the samples of some sheets: by test case, surrounding and
// metric. Series are numbered through all sheets, in the order of keys.
func (s *Store) orderOf(ctx context.Context, keys []sheetKey, sheets map[sheetKey]packed.Sheet) (sampleOrder, error) {
	sum := sha256.New()
	var ids []int64
	var text []byte
	for _, at := range keys {
		sheet := sheets[at]
		text = fmt.Appendf(text[:0], "%q %d %q %t %d\n", at.Metric, at.SizeClass, at.HardwareID, at.CoLocated, len(sheet))
		ids = slices.Grow(ids, len(sheet))
		for i := range sheet {
			ids = append(ids, sheet[i].ID)
			text = binary.LittleEndian.AppendUint64(text, uint64(sheet[i].ID)) //nolint:gosec // an ID is positive
		}
		sum.Write(text)
	}
	id := sampleOrderID(sum.Sum(nil))
	if kept := s.orders.Get(id); kept != nil {
		return kept.Value(), nil
	}
	names, err := s.seriesNames(ctx, s.reports, ids)
	if err != nil {
		return sampleOrder{}, err
	}
	surroundings := make([]bench.Surrounding, 0, len(ids))
	for _, at := range keys {
		for range sheets[at] {
			surroundings = append(surroundings, at.Surrounding)
		}
	}
	sorted := make([]int, len(ids))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, func(i, j int) int {
		a, b := names[i], names[j]
		if a.TestCaseID != b.TestCaseID {
			if c := bench.CompareTestCases(a.TestCase, b.TestCase); c != 0 {
				return c
			}
		}
		if c := compareSurroundings(surroundings[i], surroundings[j]); c != 0 {
			return c
		}
		return strings.Compare(string(a.Metric), string(b.Metric))
	})
	order := sampleOrder{names, make([]int, len(ids))}
	for place, i := range sorted {
		order.places[i] = place
	}
	s.orders.Set(id, order, ttlcache.NoTTL)
	return order, nil
}
