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
	kept *ttlcache.Cache[string, map[int64]float64] // by series
}

const (
	// maxKeptShifts bounds the shifts that are kept, in bytes: thirty parts of the histories of 700 series.
	maxKeptShifts = 1 << 20
	bytesPerShift = 48 // of a map
)

// NewShifts returns an empty store of shifts.
func NewShifts() *Shifts { return newShifts(maxKeptShifts) }

func newShifts(bytes uint64) *Shifts {
	return &Shifts{ttlcache.New(ttlcache.WithMaxCost(bytes, func(item ttlcache.CostItem[string, map[int64]float64]) uint64 {
		return uint64(len(item.Key) + bytesPerShift*len(item.Value))
	}))}
}

// of returns the shifts that are kept under a key; they must not be changed.
func (s *Shifts) of(key string) map[int64]float64 {
	if s == nil {
		return nil
	}
	if item := s.kept.Get(key); item != nil {
		return item.Value()
	}
	return nil
}

// learnedShifts are shifts that were computed, by series.
type learnedShifts struct {
	key    string
	shifts map[int64]float64
}

// keep adds shifts. Of two concurrent additions to the same shifts, one may be forgotten.
func (s *Shifts) keep(learned learnedShifts) {
	if s == nil || len(learned.shifts) == 0 {
		return
	}
	all := make(map[int64]float64)
	maps.Copy(all, s.of(learned.key))
	maps.Copy(all, learned.shifts)
	s.kept.Set(learned.key, all, ttlcache.NoTTL)
}

// readState reads the state of the results, if something is kept by it.
func (r *historyReading) readState(ctx context.Context) (err error) {
	if r.query.Shifts != nil || r.query.Drawn != nil {
		r.state, err = r.record.HistoryState(ctx, r.query.Project, r.ids)
	}
	return err
}

// shifts returns the shift of each series, as kept or from its newest points.
func (r *historyReading) shifts(ctx context.Context) ([]float64, error) {
	newest := r.ids[len(r.ids)-min(len(r.ids), history.RecentPoints+history.EarlierPoints):]
	r.learned = learnedShifts{key: r.shiftKey(newest), shifts: make(map[int64]float64)}
	kept := r.query.Shifts.of(r.learned.key)
	shifts := make([]float64, len(r.found))
	var unknown []int
	for i, s := range r.found {
		shift, known := kept[s.ID]
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
		r.learned.shifts[r.found[i].ID] = shifts[i]
	}
	return shifts, err
}

// shiftKey identifies what shifts follow from.
func (r *historyReading) shiftKey(newest []int64) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", r.state, r.query.Project, r.suite)
	for _, id := range newest {
		_ = binary.Write(sum, binary.LittleEndian, id) // never fails
	}
	return digestOf(sum)
}
