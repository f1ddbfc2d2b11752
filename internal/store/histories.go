package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// History is the history of a series in one surrounding: a point for each artifact that
// has results of it, by the ID of the artifact.
type History struct {
	Series int64
	bench.Surrounding
	Points packed.Strip
}

const (
	// partsAtOnce is about the number of parts of histories that a statement reads: they are in
	// memory together, with some 8 kB each.
	partsAtOnce = 240
)

// Histories reads the packed points that series have of some artifacts, with some fields of
// their summaries; points of stale artifacts are made from their results. It calls each for
// every series that has points, in any order, with a history for each surrounding, which may
// be empty. The histories are valid until each returns: a year of many series is more than
// should be in memory at once. An error of each ends the reading.
func (s *Store) Histories(ctx context.Context, artifacts, series []int64, fields packed.Fields, each func(of []History) error) error {
	if len(artifacts) == 0 || len(series) == 0 {
		return nil
	}
	return wrap("reading histories", s.reading(ctx, func(tx pgx.Tx) error {
		stale, err := column[int64](ctx, tx, `select distinct artifact_id from stale_result where artifact_id = any($1) order by 1`, artifacts)
		if err != nil {
			return err
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(series)))
		names, err := s.seriesByID(ctx, tx, sorted)
		if err != nil {
			return err
		}
		g := gathering{fields: fields, each: each, memory: s.read.Get()}
		defer g.memory.free(s)
		if g.changed, err = s.changedPoints(ctx, tx, stale, sorted, fields, names); err != nil {
			return err
		}
		for _, id := range slices.Sorted(slices.Values(artifacts)) {
			if _, changed := slices.BinarySearch(stale, id); !changed {
				g.artifacts = append(g.artifacts, id)
			}
		}
		done, err := g.sheets(ctx, tx, sorted, names)
		if err == nil && !done {
			err = g.parts(ctx, tx, sorted)
		}
		if err != nil {
			return err
		}
		return g.rest()
	}))
}

// HistoryState identifies the points that [Store.Histories] returns of some artifacts: those of
// a series are the same while the version is, and what the series has among the changes.
type HistoryState struct {
	Version string
	// Changed identifies, by series, what stale artifacts have of it that is not packed.
	Changed map[int64]string
}

// HistoryState reads the state of some series on some artifacts of a project.
func (s *Store) HistoryState(ctx context.Context, project string, artifacts, series []int64) (state HistoryState, err error) {
	err = s.reading(ctx, func(tx pgx.Tx) error {
		type found struct {
			Version int64
			Stale   []int64
		}
		// Strips change with their version, and artifacts become stale with marks that are only
		// added. Packing, which removes marks, gives a new version if it changes strips.
		now, err := one[found](ctx, tx, `
			select coalesce((select version from packed_version where project = $1), 0) as version,
				coalesce((select array_agg(distinct artifact_id order by artifact_id) from stale_result where artifact_id = any($2)), '{}') as stale`, project, artifacts)
		if err != nil {
			return err
		}
		state = HistoryState{strconv.FormatInt(now.Version, 10), make(map[int64]string)}
		if len(now.Stale) == 0 {
			return nil
		}
		versions, err := staleVersions(ctx, tx, now.Stale...)
		if err != nil {
			return err
		}
		for _, artifact := range now.Stale {
			var kept staleSheets
			known := len(now.Stale) <= fewStale
			if known {
				kept, err = s.staleOf(ctx, tx, artifact, versions[artifact])
				if known = !errors.Is(err, errUnpackable); known && err != nil {
					return err
				}
			}
			if !known || kept.blind { // its marks stand for whatever has changed
				state.Version += fmt.Sprintf(" %d %q", artifact, versions[artifact])
			}
			if len(kept.changed) == 0 {
				continue
			}
			for _, id := range series {
				if changed, is := kept.changed[id]; is {
					state.Changed[id] += strconv.FormatInt(artifact, 10) + " " + strconv.FormatUint(changed, 16) + ";"
				}
			}
		}
		return nil
	})
	return state, wrap("reading the state of histories of project "+project, err)
}

// gathering assembles the parts of histories in memory that is reused.
type gathering struct {
	// artifacts are those whose packed points are wanted, by ID; changed holds the points of
	// the others by series.
	artifacts []int64
	changed   map[int64]map[bench.Surrounding]packed.Strip
	// fields of summaries that are wanted.
	fields packed.Fields
	each   func(of []History) error
	memory *readMemory
	// of are the histories of one series so far; next is the place among the artifacts where
	// the last of them goes on.
	of   []History
	next int
}

// partsOf selects the parts of histories that have points of artifacts from $2 to $3, without
// the last $4 bytes for each point that is spread, of which $5 are not in the row itself. They
// come in the order in which they are stored, so that Postgres can read them ahead.
const partsOf = `
	select series_id, size_class, hardware_id, co_located, first_artifact, case
		when rest is null then substr(packed, 1, octet_length(packed) - coalesce($4 * spread, 0))
		when $4 < $5 then packed || rest
		else substr(packed, 1, octet_length(packed) - ($4 - $5) * spread) end
	from strip where series_id = any($1::bigint[]) and last_artifact >= $2 and first_artifact <= $3`

// parts reads the parts in which the artifacts may lie, of series by ascending ID.
func (g *gathering) parts(ctx context.Context, tx pgx.Tx, series []int64) error {
	if len(g.artifacts) == 0 {
		return nil
	}
	n := len(g.artifacts)
	var batch pgx.Batch
	for some := range slices.Chunk(series, max(1, partsAtOnce/(n/longestPart+2))) {
		batch.Queue(partsOf, some, g.artifacts[0], g.artifacts[n-1], g.fields.Spare(), shownFields.Spare()).Query(g.read)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if len(g.of) == 0 {
		return nil
	}
	return g.end(g.of[0].Series)
}

// read takes the parts of some series.
func (g *gathering) read(rows pgx.Rows) error {
	in := g.memory
	in.parts, in.bytes = in.parts[:0], in.bytes[:0]
	var part stripRow
	bytes := (*pgtype.DriverBytes)(&part.Packed) // valid until the next row
	if _, err := pgx.ForEachRow(rows, []any{&part.SeriesID, &part.SizeClass, &part.HardwareID, &part.CoLocated, &part.FirstArtifact, bytes}, func() error {
		one := part
		one.Packed = in.keep(part.Packed)
		in.parts = append(in.parts, one)
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(in.parts, func(a, b stripRow) int {
		return cmp.Or(compareStripKeys(a.key(), b.key()), cmp.Compare(a.FirstArtifact, b.FirstArtifact))
	})
	for i := range in.parts {
		if err := g.add(&in.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// add adds the points of a part that are wanted.
func (g *gathering) add(part *stripRow) error {
	if len(g.of) > 0 && g.of[0].Series != part.SeriesID {
		if err := g.end(g.of[0].Series); err != nil {
			return err
		}
	}
	if n := len(g.of); n == 0 || g.of[n-1].Surrounding != part.Surrounding {
		g.begin(part.key())
	}
	h := &g.of[len(g.of)-1]
	n := len(h.Points)
	points, err := packed.AppendPoints(h.Points, part.Packed, g.artifacts[0], g.artifacts[len(g.artifacts)-1], g.fields)
	if err != nil {
		return fmt.Errorf("the history of series %d: %w; 'benchloom results rebuild' derives it anew", part.SeriesID, err)
	}
	for i := n; i < len(points); i++ {
		for g.next < len(g.artifacts) && g.artifacts[g.next] < points[i].Artifact {
			g.next++
		}
		if g.next == len(g.artifacts) || g.artifacts[g.next] != points[i].Artifact {
			continue
		}
		if n != i {
			points[n] = points[i]
		}
		n++
	}
	h.Points = points[:n]
	return nil
}

// begin begins a history.
func (g *gathering) begin(at stripKey) {
	g.next = 0
	if n := len(g.of); n < cap(g.of) {
		g.of = g.of[:n+1] // with the memory of its points
	} else {
		g.of = append(g.of, History{})
	}
	h := &g.of[len(g.of)-1]
	h.Series, h.Surrounding, h.Points = at.Series, at.Surrounding, h.Points[:0]
}

// end hands over the histories of a series, with their changed points.
func (g *gathering) end(series int64) error {
	for surrounding, points := range g.changed[series] {
		h := g.history(stripKey{series, surrounding})
		h.Points = append(h.Points, points...)
		slices.SortFunc(h.Points, func(a, b packed.Point) int { return cmp.Compare(a.Artifact, b.Artifact) })
	}
	delete(g.changed, series)
	err := g.each(g.of)
	g.of = g.of[:0]
	return err
}

// rest hands over the series of which nothing is packed.
func (g *gathering) rest() error {
	for series := range g.changed {
		if err := g.end(series); err != nil {
			return err
		}
	}
	return nil
}
