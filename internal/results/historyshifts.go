package results

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/packed"
)

// Shifts keeps the shifts of series, by the artifacts and the state of the results that they follow from, so that other
// words and other charts of the same part need no points of all series. It is safe for concurrent use.
type Shifts struct {
	kept *ttlcache.Cache[string, map[shiftOf]float64]
}

// shiftOf is the series that a shift belongs to, and what stale artifacts have of it that is not packed.
type shiftOf struct {
	series  int64
	changed string
}

const (
	// maxKeptShifts bounds the shifts that are kept, in bytes: thirty parts of the histories of 700 series.
	maxKeptShifts = 1 << 20
	bytesPerShift = 72 // of a map
)

// NewShifts returns an empty store of shifts.
func NewShifts() *Shifts { return newShifts(maxKeptShifts) }

func newShifts(bytes uint64) *Shifts {
	return &Shifts{ttlcache.New(ttlcache.WithMaxCost(bytes, func(item ttlcache.CostItem[string, map[shiftOf]float64]) uint64 {
		return uint64(len(item.Key) + bytesPerShift*len(item.Value))
	}))}
}

// of returns the shifts that are kept under a key; they must not be changed.
func (s *Shifts) of(key string) map[shiftOf]float64 {
	if s == nil {
		return nil
	}
	if item := s.kept.Get(key); item != nil {
		return item.Value()
	}
	return nil
}

// learnedShifts are shifts that were computed.
type learnedShifts struct {
	key    string
	shifts map[shiftOf]float64
}

// keep adds shifts. Of two concurrent additions to the same shifts, one may be forgotten.
func (s *Shifts) keep(learned learnedShifts) {
	if s == nil || len(learned.shifts) == 0 {
		return
	}
	all := make(map[shiftOf]float64)
	maps.Copy(all, s.of(learned.key))
	maps.Copy(all, learned.shifts)
	s.kept.Set(learned.key, all, ttlcache.NoTTL)
}

// readState reads the state of the results, if something is kept by it.
func (r *historyReading) readState(ctx context.Context) (err error) {
	if r.query.Shifts != nil || r.query.Drawn != nil {
		series := make([]int64, len(r.found))
		for i := range r.found {
			series[i] = r.found[i].ID
		}
		r.state, err = r.record.HistoryState(ctx, r.query.Project, r.ids, series)
	}
	return err
}

// shifts returns the shift of each series, as kept or from its newest points.
func (r *historyReading) shifts(ctx context.Context) ([]float64, error) {
	newest := r.ids[len(r.ids)-min(len(r.ids), history.RecentPoints+history.EarlierPoints):]
	r.learned = learnedShifts{key: r.shiftKey(newest), shifts: make(map[shiftOf]float64)}
	kept := r.query.Shifts.of(r.learned.key)
	shifts := make([]float64, len(r.found))
	var unknown []int
	for i, s := range r.found {
		shift, known := kept[r.shiftOf(s.ID)]
		if shifts[i] = shift; !known {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return shifts, nil
	}
	var places []history.Place
	err := r.read(ctx, newest, unknown, packed.MinField, &placing{list: &places}, func(s int, line mergedLine) { shifts[s] = history.Shift(line.points, places) })
	for _, i := range unknown {
		r.learned.shifts[r.shiftOf(r.found[i].ID)] = shifts[i]
	}
	return shifts, err
}

func (r *historyReading) shiftOf(series int64) shiftOf {
	return shiftOf{series, r.state.Changed[series]}
}

// shiftKey identifies what shifts follow from, besides what is not packed.
func (r *historyReading) shiftKey(newest []int64) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", r.state.Version, r.query.Project, r.suite)
	for _, id := range newest {
		_ = binary.Write(sum, binary.LittleEndian, id) // never fails
	}
	return digestOf(sum)
}
