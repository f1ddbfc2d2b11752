package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// keptStaleBytes bounds the packed results that a process keeps of artifacts with stale
// sheets: some 300 kB each for a large project.
const keptStaleBytes = 8 << 20

// staleSheets are the results of an artifact, made from its rows in a version and packed.
type staleSheets struct {
	version string
	sheets  map[sheetKey][]byte
	size    ResultSize
}

func newKeptStale() *ttlcache.Cache[int64, staleSheets] {
	return ttlcache.New(ttlcache.WithMaxCost(keptStaleBytes, func(item ttlcache.CostItem[int64, staleSheets]) uint64 {
		bytes := 1
		for at, sheet := range item.Value.sheets {
			bytes += len(at.Metric) + len(at.HardwareID) + len(sheet)
		}
		return uint64(bytes) //nolint:gosec // it is positive
	}))
}

// staleVersions returns the versions of those artifacts that are stale. A version changes with
// the results of its artifact, since each change adds a mark.
func staleVersions(ctx context.Context, q querier, artifacts ...int64) (map[int64]string, error) {
	type version struct {
		ArtifactID int64
		Version    string
	}
	list, err := all[version](ctx, q, `
		select m.artifact_id, concat_ws('|', string_agg(concat_ws(',', m.ctid, m.xmin), ';' order by m.ctid),
			(select string_agg(s.xmin::text, ',' order by s.metric, s.size_class, s.hardware_id, s.co_located) from sheet s where s.artifact_id = m.artifact_id)) as version
		from stale_result m where m.artifact_id = any($1) group by m.artifact_id`, artifacts)
	versions := make(map[int64]string, len(list))
	for _, v := range list {
		versions[v.ArtifactID] = v.Version
	}
	return versions, err
}

// keptStale returns what is kept of a stale artifact; known is false if it differs from what
// the rows say now.
func (s *Store) keptStale(ctx context.Context, artifact int64) (kept staleSheets, known bool, err error) {
	item := s.stale.Get(artifact)
	if item == nil {
		return staleSheets{}, false, nil
	}
	versions, err := staleVersions(ctx, s.reports, artifact)
	return item.Value(), err == nil && versions[artifact] == item.Value().version, err
}

// rawSamples reads the samples of an artifact from its rows. What is read of a stale artifact
// is kept, since its pages are looked at before it is packed.
func (s *Store) rawSamples(ctx context.Context, artifact int64) ([]bench.Samples, error) {
	kept, known, err := s.keptStale(ctx, artifact)
	if err != nil {
		return nil, err
	}
	if known {
		return s.unpackSamples(ctx, artifact, "stale "+kept.version, kept.sheets)
	}
	var sheets map[sheetKey]packed.Sheet
	err = s.reading(ctx, func(tx pgx.Tx) error {
		versions, err := staleVersions(ctx, tx, artifact)
		if err != nil {
			return err
		}
		if sheets, err = s.readRaw(ctx, tx, artifact, new(rawReading)); err != nil || versions[artifact] == "" {
			return err
		}
		s.keepStale(artifact, versions[artifact], sheets)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.samplesIn(ctx, sheets)
}

// wantedSeries are series by ascending ID, with their metrics without lines.
type wantedSeries struct {
	ids     []int64
	metrics map[bench.Metric]bool
}

// stalePoints calls add with the points that a stale artifact in a version has of some series,
// as the transaction sees its rows.
func (s *Store) stalePoints(ctx context.Context, tx pgx.Tx, artifact int64, version string, wanted wantedSeries, add func(series int64, where bench.Surrounding, p packed.Point)) error {
	if item := s.stale.Get(artifact); item != nil && item.Value().version == version {
		for at, sheet := range item.Value().sheets {
			if !wanted.metrics[at.Metric] {
				continue
			}
			points, err := packed.PointsOf(artifact, sheet, packed.AllFields)
			if err != nil {
				return err
			}
			for _, id := range wanted.ids {
				p, known, err := points.Of(id)
				if err != nil {
					return err
				}
				if known {
					add(id, at.Surrounding, p)
				}
			}
		}
		return nil
	}
	read := s.raws.Get()
	defer func() {
		read.reset()
		s.raws.Put(read)
	}()
	sheets, err := s.readRaw(ctx, tx, artifact, read)
	if err != nil {
		return err
	}
	s.keepStale(artifact, version, sheets)
	for at, sheet := range sheets {
		for i := range sheet {
			if _, is := slices.BinarySearch(wanted.ids, sheet[i].ID); is {
				add(sheet[i].ID, at.Surrounding, pointOf(artifact, &sheet[i]))
			}
		}
	}
	return nil
}

// pointOf returns the point of a series with an origin of its own: one within the series would
// keep all results of its artifact in memory.
func pointOf(artifact int64, s *packed.Series) packed.Point {
	p := packed.NewPoint(artifact, s)
	p.Origin = new(s.Origin)
	return p
}

// keepStale keeps what was read of a stale artifact, unless it cannot be packed.
func (s *Store) keepStale(artifact int64, version string, sheets map[sheetKey]packed.Sheet) {
	kept := staleSheets{version: version, sheets: make(map[sheetKey][]byte, len(sheets))}
	for at, sheet := range sheets {
		b, err := sheet.Pack()
		if err != nil {
			return // packing it reports why
		}
		kept.sheets[at] = b
		kept.size.Series, kept.size.Values = kept.size.Series+int64(len(sheet)), kept.size.Values+int64(valuesIn(sheet))
	}
	s.stale.Set(artifact, kept, ttlcache.NoTTL)
}

// rawResult holds the facts that all values of a result share.
type rawResult struct {
	ID int64
	bench.Surrounding
	Segment bench.Segment
	Kind    bench.JobKind
	Suite   string
}

// readRaw makes the sheets of an artifact from its rows, in the memory of a reading. Values
// are assembled here, as Postgres takes several times as long to make arrays of them.
func (s *Store) readRaw(ctx context.Context, tx pgx.Tx, artifact int64, read *rawReading) (map[sheetKey]packed.Sheet, error) {
	const latest = `select r.id, r.size_class, r.hardware_id, r.co_located, r.run_id from latest_result r where r.artifact_id = $1 and r.status = 'ok'`
	list, err := all[rawResult](ctx, tx, `
		select r.id, r.size_class, r.hardware_id, r.co_located, n.segment, j.kind, coalesce(j.suite_hash, '') as suite from (`+latest+`) r
		join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id`, artifact)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	results := make(map[int64]*rawResult, len(list))
	for i := range list {
		results[list[i].ID] = &list[i]
	}
	rows, err := tx.Query(ctx, `
		with latest as materialized (`+latest+`), taken as materialized (
			select c.id, c.result_id, c.iteration, c.disturbed from latest r join collection c on c.result_id = r.id
		)
		select c.result_id, p.series_id, c.iteration, p.value, c.disturbed from taken c join `+statistics+` p on p.collection_id = c.id
		order by p.series_id, c.result_id, c.iteration`, artifact)
	if err != nil {
		return nil, err
	}
	var one rawValue
	if _, err := pgx.ForEachRow(rows, []any{&one.result, &one.series, &one.iteration, &one.value, &one.disturbed}, func() error {
		read.add(one)
		return nil
	}); err != nil {
		return nil, err
	}
	read.end()
	ids := make([]int64, len(read.series))
	for i, series := range read.series {
		ids[i] = series.ID
	}
	names, err := s.seriesNames(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	sizes, keys := make(map[sheetKey]int), make([]sheetKey, len(names))
	for i := range read.series {
		series, of := &read.series[i], results[read.results[i]]
		_, unit := names[i].Metric.Split()
		keys[i] = sheetKey{unit, of.Surrounding}
		sizes[keys[i]]++
		series.Origin.Kind, series.Origin.Segment, series.Origin.Suite = of.Kind, of.Segment, of.Suite
	}
	read.sheets = slices.Grow(read.sheets[:0], len(keys))[:len(keys)]
	sheets, from := make(map[sheetKey]packed.Sheet, len(sizes)), 0
	for at, size := range sizes {
		sheets[at] = read.sheets[from : from : from+size]
		from += size
	}
	for i, at := range keys {
		sheets[at] = append(sheets[at], read.series[i])
	}
	return sheets, nil
}

// rawValue is a row of a value.
type rawValue struct {
	result, series int64
	iteration      int
	value          float64
	disturbed      string
}

// rawReading assembles values that come by series, result and iteration.
type rawReading struct {
	series  []packed.Series
	results []int64 // of each series
	// values, iterations and disturbed are the memory of all series; from is where those of
	// the last one begin.
	values     []float64
	iterations []int
	disturbed  []bool
	from       int
	// causes counts the causes of disturbances of the last series.
	causes map[string]int
	// sheets is the memory of all sheets.
	sheets packed.Sheet
}

// reset makes the memory ready for another reading. Nothing may refer to what was read.
func (r *rawReading) reset() {
	clear(r.series)
	clear(r.sheets)
	r.series, r.results, r.from = r.series[:0], r.results[:0], 0
	r.values, r.iterations, r.disturbed = r.values[:0], r.iterations[:0], r.disturbed[:0]
	clear(r.causes)
}

func (r *rawReading) add(v rawValue) {
	if n := len(r.series); n == 0 || r.series[n-1].ID != v.series || r.results[n-1] != v.result {
		r.end()
		r.series, r.results, r.from = append(r.series, packed.Series{ID: v.series}), append(r.results, v.result), len(r.values)
	}
	r.values, r.iterations, r.disturbed = append(r.values, v.value), append(r.iterations, v.iteration), append(r.disturbed, v.disturbed != "")
	if cause, _, _ := strings.Cut(v.disturbed, ":"); cause != "" {
		if r.causes == nil {
			r.causes = make(map[string]int)
		}
		r.causes[cause]++
	}
}

// end completes the last series.
func (r *rawReading) end() {
	if len(r.series) == 0 {
		return
	}
	last, to := &r.series[len(r.series)-1], len(r.values)
	last.Values, last.Iterations, last.Disturbed = r.values[r.from:to:to], r.iterations[r.from:to:to], r.disturbed[r.from:to:to]
	if len(r.causes) > 0 {
		last.Origin.DisturbedBy = slices.MinFunc(slices.Collect(maps.Keys(r.causes)), func(a, b string) int {
			return cmp.Or(r.causes[b]-r.causes[a], strings.Compare(a, b))
		})
		clear(r.causes)
	}
}
