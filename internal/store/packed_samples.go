package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// Bounds of what a process keeps of artifacts that were read. Artifacts whose pages are
// looked at are compared several times, with their neighbours and with others.
const (
	keptSamplesBytes = 6 << 20
	bytesPerSamples  = 280 // without values
	bytesPerValue    = 17
)

// versionedSamples are the samples of an artifact as its sheets hold them in a version.
type versionedSamples struct {
	version string
	samples []bench.Samples
}

func newKeptSamples() *ttlcache.Cache[int64, versionedSamples] {
	return ttlcache.New(ttlcache.WithMaxCost(keptSamplesBytes, func(item ttlcache.CostItem[int64, versionedSamples]) uint64 {
		bytes := 0
		for i := range item.Value.samples {
			bytes += bytesPerSamples + bytesPerValue*len(item.Value.samples[i].Values)
		}
		return uint64(bytes) //nolint:gosec // it is positive
	}))
}

// packedSamples returns the samples of an artifact as its sheets have them. known is false if
// it has none that agree with its results. Samples are kept, and read again if a sheet was
// written since: callers must not change them.
func (s *Store) packedSamples(ctx context.Context, artifact int64) (samples []bench.Samples, known bool, err error) {
	in := s.read.Get()
	defer in.free(s)
	rows, err := artifactSheets(ctx, s.reports, artifact, nil)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	if kept := s.samples.Get(artifact); kept != nil && kept.Value().version == versionOf(rows) {
		return kept.Value().samples, true, nil
	}
	if rows, err = artifactSheets(ctx, s.reports, artifact, in); err != nil || len(rows) == 0 {
		return nil, false, err
	}
	sheets := make(map[sheetKey][]byte, len(rows))
	for _, r := range rows {
		sheets[sheetKey{r.Metric, r.Surrounding}] = r.Packed
	}
	samples, err = s.unpackSamples(ctx, artifact, versionOf(rows), sheets)
	if errors.Is(err, packed.ErrCorrupt) { // such as a sheet of another version: the rows tell
		return nil, false, nil
	}
	return samples, err == nil, err
}

// unpackSamples returns the samples of an artifact, as kept or from its packed sheets, whose
// content the version identifies. Callers must not change them. Errors of sheets wrap
// [packed.ErrCorrupt].
func (s *Store) unpackSamples(ctx context.Context, artifact int64, version string, packedSheets map[sheetKey][]byte) ([]bench.Samples, error) {
	if kept := s.samples.Get(artifact); kept != nil && kept.Value().version == version {
		return kept.Value().samples, nil
	}
	all := s.unpacked.Get()
	defer func() {
		clear(*all)
		*all = (*all)[:0]
		s.unpacked.Put(all)
	}()
	sheets := make(map[sheetKey]packed.Sheet, len(packedSheets))
	for at, b := range packedSheets {
		from := len(*all)
		var err error
		if *all, err = packed.AppendSheet(*all, b); err != nil {
			return nil, err
		}
		sheets[at] = (*all)[from:]
	}
	samples, err := s.samplesIn(ctx, sheets)
	if err == nil {
		s.samples.Set(artifact, versionedSamples{version, samples}, ttlcache.NoTTL)
	}
	return samples, err
}

// versionedSheet is a row of the table with the transaction that wrote it.
type versionedSheet struct {
	Metric bench.Metric
	bench.Surrounding
	Version string
	Packed  []byte
}

// artifactSheets reads the sheets of an artifact into memory, or only their versions if that is nil; none if it is stale.
func artifactSheets(ctx context.Context, q querier, artifact int64, in *readMemory) ([]versionedSheet, error) {
	rows, err := q.Query(ctx, `
		select s.metric, s.size_class, s.hardware_id, s.co_located, s.xmin::text as version, case when $2 then s.packed end as packed from sheet s
		where s.artifact_id = $1 and not exists (select from stale_result m where m.artifact_id = $1)
		order by s.metric, s.size_class, s.hardware_id, s.co_located`, artifact, in != nil)
	if err != nil {
		return nil, err
	}
	var sheets []versionedSheet
	var r versionedSheet
	own := (*pgtype.DriverBytes)(&r.Packed) // valid until the next row
	_, err = pgx.ForEachRow(rows, []any{&r.Metric, &r.SizeClass, &r.HardwareID, &r.CoLocated, &r.Version, own}, func() error {
		one := r
		if in != nil {
			one.Packed = in.keep(r.Packed)
		}
		sheets = append(sheets, one)
		return nil
	})
	return sheets, err
}

// versionOf changes whenever a sheet of an artifact is written or removed.
func versionOf(rows []versionedSheet) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%q %d %q %t %s\n", r.Metric, r.SizeClass, r.HardwareID, r.CoLocated, r.Version)
	}
	return b.String()
}

// samplesIn names what sheets hold, in the order of test cases, surroundings and metrics.
func (s *Store) samplesIn(ctx context.Context, sheets map[sheetKey]packed.Sheet) ([]bench.Samples, error) {
	places := slices.SortedFunc(maps.Keys(sheets), func(a, b sheetKey) int {
		if c := compareSurroundings(a.Surrounding, b.Surrounding); c != 0 {
			return c
		}
		return strings.Compare(string(a.Metric), string(b.Metric))
	})
	order, err := s.orderOf(ctx, places, sheets)
	if err != nil {
		return nil, err
	}
	samples := make([]bench.Samples, len(order.names))
	n := 0
	for _, at := range places {
		sheet := sheets[at]
		for i := range sheet {
			series, name, one := &sheet[i], order.names[n], &samples[order.places[n]]
			n++
			one.Series, one.TestCase, one.Metric = series.ID, name.TestCase, name.Metric
			one.Kind, one.Surrounding, one.Segment = series.Origin.Kind, at.Surrounding, series.Origin.Segment
			one.Values, one.Iterations = series.Values, series.Iterations
			one.Disturbed, one.DisturbedBy = series.Disturbed, series.Origin.DisturbedBy
		}
	}
	return samples, nil
}

// seriesNames returns the names of series, in their order.
func (s *Store) seriesNames(ctx context.Context, q querier, ids []int64) ([]*Series, error) {
	names := s.series.of(ids)
	var unknown []int64
	for i, id := range ids {
		if names[i] == nil {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return names, nil
	}
	found, err := s.seriesByID(ctx, q, unknown)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if names[i] != nil {
			continue
		}
		name, there := found[id]
		if !there {
			return nil, fmt.Errorf("series %d of a sheet is not in the record", id)
		}
		names[i] = &name
	}
	return names, nil
}
