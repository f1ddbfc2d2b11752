package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

const (
	// keptStaleBytes bounds the packed results that a process keeps of artifacts with stale
	// sheets: 300 to 500 kB each for a large project.
	keptStaleBytes = 12 << 20
	// bytesPerChanged is the size of what identifies changed results of a series.
	bytesPerChanged = 32
)

// staleSheets are the results of an artifact, made from its rows in a version and packed.
type staleSheets struct {
	version string
	sheets  map[sheetKey][]byte
	size    ResultSize
	// changed identifies the results of series that are not what the stored sheets have; blind
	// is set if one of these cannot be read, and may have had others.
	changed map[int64]uint64
	blind   bool
}

func newKeptStale() *ttlcache.Cache[int64, staleSheets] {
	return ttlcache.New(ttlcache.WithMaxCost(keptStaleBytes, func(item ttlcache.CostItem[int64, staleSheets]) uint64 {
		bytes := 1 + bytesPerChanged*len(item.Value.changed)
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

// errUnpackable reports results that no sheet can hold. They are read from their rows; packing
// them reports why.
var errUnpackable = errors.New("the results cannot be packed")

// staleOf returns the results of a stale artifact in a version, as kept or as the transaction
// sees its rows. They are kept, since the pages of an artifact are looked at before it is
// packed; of several callers, one reads. The error may wrap [errUnpackable].
func (s *Store) staleOf(ctx context.Context, tx pgx.Tx, artifact int64, version string) (staleSheets, error) {
	known := func() (kept staleSheets, is bool) {
		if item := s.stale.Get(artifact); item != nil {
			kept = item.Value()
		}
		return kept, kept.version == version
	}
	if kept, is := known(); is {
		return kept, nil
	}
	select {
	case s.readingStale <- struct{}{}:
		defer func() { <-s.readingStale }()
	case <-ctx.Done():
		return staleSheets{}, ctx.Err()
	}
	if kept, is := known(); is { // another caller has read it
		return kept, nil
	}
	read := s.raws.Get()
	defer func() {
		read.reset()
		s.raws.Put(read)
	}()
	sheets, err := s.readRaw(ctx, tx, artifact, read)
	if err != nil {
		return staleSheets{}, err
	}
	found := staleSheets{version: version, sheets: make(map[sheetKey][]byte, len(sheets))}
	for at, sheet := range sheets {
		if found.sheets[at], err = sheet.Pack(); err != nil {
			return staleSheets{}, errors.Join(errUnpackable, err)
		}
		found.size.Series, found.size.Values = found.size.Series+int64(len(sheet)), found.size.Values+int64(valuesIn(sheet))
	}
	if err := found.compare(ctx, tx, artifact, sheets); err != nil {
		return staleSheets{}, err
	}
	s.stale.Set(artifact, found, ttlcache.NoTTL)
	return found, nil
}

// compare compares results with the stored sheets of their artifact.
func (f *staleSheets) compare(ctx context.Context, tx pgx.Tx, artifact int64, sheets map[sheetKey]packed.Sheet) error {
	rows, err := all[sheetRow](ctx, tx, `select artifact_id, metric, size_class, hardware_id, co_located, packed from sheet where artifact_id = $1`, artifact)
	if err != nil {
		return err
	}
	stored, keys := make(map[sheetKey][]byte, len(rows)), slices.Collect(maps.Keys(sheets))
	for _, r := range rows {
		at := sheetKey{r.Metric, r.Surrounding}
		stored[at], keys = r.Packed, append(keys, at)
	}
	f.changed = make(map[int64]uint64)
	slices.SortFunc(keys, compareSheetKeys)
	for _, at := range slices.Compact(keys) {
		if bytes.Equal(stored[at], f.sheets[at]) {
			continue
		}
		before, err := packed.UnpackSheet(stored[at])
		f.blind = f.blind || err != nil && stored[at] != nil
		differences(before, sheets[at], func(series int64, now *packed.Series) {
			f.changed[series] = digestSeries(f.changed[series], at.Surrounding, now)
		})
	}
	return nil
}

// differences calls each with the series that are not the same in two sheets, as they are
// now; nil: they are gone.
func differences(before, now packed.Sheet, each func(series int64, now *packed.Series)) {
	for len(before) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(before) > 0 && before[0].ID < now[0].ID:
			each(before[0].ID, nil)
			before = before[1:]
		case len(before) == 0 || now[0].ID < before[0].ID:
			each(now[0].ID, &now[0])
			now = now[1:]
		default:
			if !now[0].Equal(&before[0]) {
				each(now[0].ID, &now[0])
			}
			before, now = before[1:], now[1:]
		}
	}
}

// digestSeries identifies the results of a series in a surrounding, and those before them.
func digestSeries(before uint64, where bench.Surrounding, s *packed.Series) uint64 {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %q %t\n", before, where.SizeClass, where.HardwareID, where.CoLocated)
	if s != nil {
		fmt.Fprintf(sum, "%q %v %v\n", s.Origin, s.Iterations, s.Disturbed)
		for _, v := range s.Values {
			fmt.Fprintf(sum, " %x", math.Float64bits(v))
		}
	}
	return binary.LittleEndian.Uint64(sum.Sum(nil))
}

// rawSamples reads the samples of an artifact from its rows.
func (s *Store) rawSamples(ctx context.Context, artifact int64) ([]bench.Samples, error) {
	if kept, known, err := s.keptStale(ctx, artifact); err != nil {
		return nil, err
	} else if known {
		return s.unpackSamples(ctx, artifact, "stale "+kept.version, kept.sheets)
	}
	var kept staleSheets
	var sheets map[sheetKey]packed.Sheet
	err := s.reading(ctx, func(tx pgx.Tx) error {
		versions, err := staleVersions(ctx, tx, artifact)
		if err != nil {
			return err
		}
		if version := versions[artifact]; version != "" {
			if kept, err = s.staleOf(ctx, tx, artifact, version); !errors.Is(err, errUnpackable) {
				return err
			}
		}
		sheets, err = s.readRaw(ctx, tx, artifact, new(rawReading))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case kept.version != "":
		return s.unpackSamples(ctx, artifact, "stale "+kept.version, kept.sheets)
	}
	return s.samplesIn(ctx, sheets)
}

// wantedSeries are series by ascending ID, with their metrics without lines.
type wantedSeries struct {
	ids     []int64
	metrics map[bench.Metric]bool
	// fields of summaries that are wanted.
	fields packed.Fields
}

// stalePoints calls add with the points that a stale artifact in a version has of some series,
// as the transaction sees its rows.
func (s *Store) stalePoints(ctx context.Context, tx pgx.Tx, artifact int64, version string, wanted wantedSeries, add func(series int64, where bench.Surrounding, p packed.Point)) error {
	kept, err := s.staleOf(ctx, tx, artifact, version)
	if errors.Is(err, errUnpackable) {
		return s.rawPoints(ctx, tx, artifact, wanted, add)
	}
	if err != nil {
		return err
	}
	for at, sheet := range kept.sheets {
		if !wanted.metrics[at.Metric] {
			continue
		}
		points, err := packed.PointsOf(artifact, sheet, wanted.fields)
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

// rawPoints calls add with the points that an artifact has of some series, as the transaction
// sees its rows.
func (s *Store) rawPoints(ctx context.Context, tx pgx.Tx, artifact int64, wanted wantedSeries, add func(series int64, where bench.Surrounding, p packed.Point)) error {
	sheets, err := s.readRaw(ctx, tx, artifact, new(rawReading))
	for at, sheet := range sheets {
		for i := range sheet {
			if _, is := slices.BinarySearch(wanted.ids, sheet[i].ID); is {
				add(sheet[i].ID, at.Surrounding, pointOf(artifact, &sheet[i]))
			}
		}
	}
	return err
}

// pointOf returns the point of a series with an origin of its own: one within the series would
// keep all results of its artifact in memory.
func pointOf(artifact int64, s *packed.Series) packed.Point {
	p := packed.NewPoint(artifact, s)
	p.Origin = new(s.Origin)
	return p
}

// rawResult holds the facts that all values of a result share.
type rawResult struct {
	ID int64
	bench.Surrounding
	Segment bench.Segment
	Kind    bench.JobKind
	Suite   string
}

// readRaw makes the sheets of an artifact from its rows, in the memory of a reading.
func (s *Store) readRaw(ctx context.Context, tx pgx.Tx, artifact int64, read *rawReading) (map[sheetKey]packed.Sheet, error) {
	list, err := all[rawResult](ctx, tx, `
		select r.id, r.size_class, r.hardware_id, r.co_located, n.segment, j.kind, coalesce(j.suite_hash, '') as suite
		from latest_result r join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id
		where r.artifact_id = $1 and r.status = 'ok'`, artifact)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	results := make(map[int64]*rawResult, len(list))
	for i := range list {
		results[list[i].ID] = &list[i]
	}
	if err := read.rows(ctx, tx, artifact, slices.Collect(maps.Keys(results))); err != nil {
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

// rawCollection is an iteration of a result.
type rawCollection struct {
	result    int64
	iteration int
	disturbed string
}

// rawValue is a row of a value.
type rawValue struct {
	series int64
	// collection is its place among the collections.
	collection int
	value      float64
}

// rawReading assembles the values of an artifact.
type rawReading struct {
	collections []rawCollection
	places      map[int64]int // of the collections, by their IDs
	rawValues   []rawValue
	// numbers, ids and counts number the series, list and count their values; ordered holds
	// the values in their order.
	numbers map[int64]int
	ids     []int64
	counts  []int
	ordered []rawValue
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

// rows reads the values of some results of an artifact. It joins and sorts them here: Postgres
// takes several times as long.
func (r *rawReading) rows(ctx context.Context, tx pgx.Tx, artifact int64, results []int64) error {
	if r.places == nil {
		r.places = make(map[int64]int)
	}
	rows, err := tx.Query(ctx, `
		select c.id, c.result_id, c.iteration, c.disturbed from collection c where c.result_id = any($1) order by c.result_id, c.iteration`, results)
	if err != nil {
		return err
	}
	var id int64
	var c rawCollection
	first, last := int64(math.MaxInt64), int64(0)
	if _, err := pgx.ForEachRow(rows, []any{&id, &c.result, &c.iteration, &c.disturbed}, func() error {
		r.places[id] = len(r.collections)
		r.collections = append(r.collections, c)
		first, last = min(first, id), max(last, id)
		return nil
	}); err != nil {
		return err
	}
	// The values of an artifact lie together; few belong to other collections.
	for _, table := range []string{"pstat", "pstat_runtime"} {
		rows, err := tx.Query(ctx, `select collection_id, series_id, value from `+table+` where artifact_id = $1 and collection_id between $2 and $3`, artifact, first, last)
		if err != nil {
			return err
		}
		if err := r.take(rows); err != nil {
			return err
		}
	}
	for _, v := range r.inOrder() {
		r.add(v)
	}
	return nil
}

// take takes the rows of values: there are tens of thousands, of three numbers each, which
// mostly come in binary.
func (r *rawReading) take(rows pgx.Rows) error {
	defer rows.Close()
	asText := slices.ContainsFunc(rows.FieldDescriptions(), func(f pgconn.FieldDescription) bool { return f.Format != pgx.BinaryFormatCode })
	for rows.Next() {
		var collection int64
		var v rawValue
		if asText {
			if err := rows.Scan(&collection, &v.series, &v.value); err != nil {
				return err
			}
		} else {
			raw := rows.RawValues()
			number := func(i int) uint64 { return binary.BigEndian.Uint64(raw[i]) }
			collection, v.series, v.value = int64(number(0)), int64(number(1)), math.Float64frombits(number(2)) //nolint:gosec // they are int64
		}
		if place, wanted := r.places[collection]; wanted {
			v.collection = place
			r.rawValues = append(r.rawValues, v)
		}
	}
	return rows.Err()
}

// inOrder returns the values by series, then by collection. They mostly come by collection.
func (r *rawReading) inOrder() []rawValue {
	if r.numbers == nil {
		r.numbers = make(map[int64]int)
	}
	for _, v := range r.rawValues {
		number, known := r.numbers[v.series]
		if !known {
			number = len(r.ids)
			r.numbers[v.series], r.ids, r.counts = number, append(r.ids, v.series), append(r.counts, 0)
		}
		r.counts[number]++
	}
	slices.Sort(r.ids)
	from := 0
	for _, id := range r.ids {
		number := r.numbers[id]
		from, r.counts[number] = from+r.counts[number], from
	}
	r.ordered = slices.Grow(r.ordered[:0], len(r.rawValues))[:len(r.rawValues)]
	for _, v := range r.rawValues {
		number := r.numbers[v.series]
		r.ordered[r.counts[number]] = v
		r.counts[number]++
	}
	from = 0
	for _, id := range r.ids {
		end := r.counts[r.numbers[id]]
		byCollection := func(a, b rawValue) int { return a.collection - b.collection }
		if own := r.ordered[from:end]; !slices.IsSortedFunc(own, byCollection) {
			slices.SortFunc(own, byCollection)
		}
		from = end
	}
	return r.ordered
}

// reset makes the memory ready for another reading. Nothing may refer to what was read.
func (r *rawReading) reset() {
	clear(r.series)
	clear(r.sheets)
	r.series, r.results, r.from = r.series[:0], r.results[:0], 0
	r.values, r.iterations, r.disturbed = r.values[:0], r.iterations[:0], r.disturbed[:0]
	clear(r.causes)
	clear(r.collections)
	clear(r.places)
	clear(r.numbers)
	r.collections, r.rawValues, r.ids, r.counts = r.collections[:0], r.rawValues[:0], r.ids[:0], r.counts[:0]
}

// add adds a value. Values come by series, then by collection.
func (r *rawReading) add(v rawValue) {
	c := &r.collections[v.collection]
	if n := len(r.series); n == 0 || r.series[n-1].ID != v.series || r.results[n-1] != c.result {
		r.end()
		r.series, r.results, r.from = append(r.series, packed.Series{ID: v.series}), append(r.results, c.result), len(r.values)
	}
	r.values, r.iterations, r.disturbed = append(r.values, v.value), append(r.iterations, c.iteration), append(r.disturbed, c.disturbed != "")
	if cause, _, _ := strings.Cut(c.disturbed, ":"); cause != "" {
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
