package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

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
	order := sampleOrder{names, make([]int, len(ids))}
	for place, i := range sortedSeries(names, keys, sheets) {
		order.places[i] = place
	}
	s.orders.Set(id, order, ttlcache.NoTTL)
	return order, nil
}

// sortedSeries returns the numbers of series in the order of [Store.orderOf]. It compares texts
// once for each test case and each metric, of which there are few.
func sortedSeries(names []*Series, keys []sheetKey, sheets map[sheetKey]packed.Sheet) []int {
	testCases, metrics := make(map[int64]*Series), make(map[bench.Metric]int)
	for _, name := range names {
		testCases[name.TestCaseID], metrics[name.Metric] = name, 0
	}
	byName := slices.SortedFunc(maps.Values(testCases), func(a, b *Series) int { return bench.CompareTestCases(a.TestCase, b.TestCase) })
	places := make(map[int64]int, len(byName))
	for place, one := range byName {
		places[one.TestCaseID] = place
	}
	for place, metric := range slices.Sorted(maps.Keys(metrics)) {
		metrics[metric] = place
	}
	var surroundings []bench.Surrounding
	for _, at := range keys {
		surroundings = append(surroundings, at.Surrounding)
	}
	slices.SortFunc(surroundings, compareSurroundings)
	surroundings = slices.Compact(surroundings)
	type numbered struct{ testCase, surrounding, metric, number int }
	sorted := make([]numbered, 0, len(names))
	for _, at := range keys {
		surrounding, _ := slices.BinarySearchFunc(surroundings, at.Surrounding, compareSurroundings)
		for range sheets[at] {
			i := len(sorted)
			sorted = append(sorted, numbered{places[names[i].TestCaseID], surrounding, metrics[names[i].Metric], i})
		}
	}
	slices.SortFunc(sorted, func(a, b numbered) int {
		return cmp.Or(a.testCase-b.testCase, a.surrounding-b.surrounding, a.metric-b.metric, a.number-b.number)
	})
	numbers := make([]int, len(sorted))
	for i, one := range sorted {
		numbers[i] = one.number
	}
	return numbers
}
