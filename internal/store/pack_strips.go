package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// stripKey identifies a history.
type stripKey struct {
	Series int64
	bench.Surrounding
}

func compareStripKeys(a, b stripKey) int {
	return cmp.Or(cmp.Compare(a.Series, b.Series), compareSurroundings(a.Surrounding, b.Surrounding))
}

// stripChanges holds the new points of histories by artifact; nil: the artifact has none any more.
type stripChanges map[stripKey]map[int64]*packed.Point

func (c stripChanges) set(at stripKey, artifact int64, p *packed.Point) {
	if c[at] == nil {
		c[at] = make(map[int64]*packed.Point)
	}
	c[at][artifact] = p
}

func (c stripChanges) remove(artifact int64, at sheetKey, sheet storedSheet) {
	for _, s := range sheet.Sheet {
		c.set(stripKey{s.ID, at.Surrounding}, artifact, nil)
	}
}

func (c stripChanges) add(artifact int64, at sheetKey, sheet packed.Sheet) {
	for _, s := range sheet {
		p := packed.NewPoint(artifact, &s)
		c.set(stripKey{s.ID, at.Surrounding}, artifact, &p)
	}
}

// removeAll removes all points of an artifact in a surrounding.
func (c stripChanges) removeAll(ctx context.Context, tx pgx.Tx, project string, artifact int64, s bench.Surrounding) error {
	series, err := column[int64](ctx, tx, `
		select s.series_id from strip s join pstat_series se on se.id = s.series_id join test_case tc on tc.id = se.test_case_id
		where tc.project = @project and @artifact between s.first_artifact and s.last_artifact
			and (s.size_class, s.hardware_id, s.co_located) = (@class, @hardware, @co_located)`,
		pgx.NamedArgs{"project": project, "artifact": artifact, "class": s.SizeClass, "hardware": s.HardwareID, "co_located": s.CoLocated})
	for _, id := range series {
		c.set(stripKey{id, s}, artifact, nil)
	}
	return err
}

// forget leaves the points of an artifact as they are.
func (c stripChanges) forget(artifact int64) {
	for at, points := range c {
		if delete(points, artifact); len(points) == 0 {
			delete(c, at)
		}
	}
}

// stripsAtOnce bounds the histories of one statement, and so the bytes that are in memory:
// with two long parts of each, some 90 kB a history.
const stripsAtOnce = 200

// write changes the parts of histories in which the artifacts lie. Others stay untouched.
// It names the parts that are lost: see [PackError].
func (c stripChanges) write(ctx context.Context, tx pgx.Tx, artifacts []int64) (lost []string, err error) {
	keys := slices.SortedFunc(maps.Keys(c), compareStripKeys)
	for some := range slices.Chunk(keys, stripsAtOnce) {
		without, err := c.writeSome(ctx, tx, artifacts, some)
		if err != nil {
			return lost, err
		}
		lost = append(lost, without...)
	}
	return lost, nil
}

const (
	// fullest is the largest number of points with which a part of a history is full: the next
	// artifact begins another one, and full parts that follow each other become one while they
	// fit. A new artifact rewrites the newest part of each of its series: with 5,600 of them, 72
	// points of at most 53 bytes are 21 MB. The log of Postgres also holds the pages as they were
	// at the last checkpoint: up to 80 MB in all.
	fullest = 72
	// fullestSpread is the number of sizes that full parts have: else the parts of all series of
	// an artifact would become full, and one with those before, at once.
	fullestSpread = 16
	// longestPart bounds the points of a part: what pages show of them, up to 37 bytes each, fits
	// into a page of Postgres.
	longestPart = 3 * fullest
)

// fullPart returns the number of points with which a part of the history of a series is full.
func fullPart(series int64) int { return fullest - int(series%fullestSpread) }

// shownFields are the summaries that pages show. They are in the row itself, which Postgres
// reads ahead; the rest of a long part is outside.
const shownFields = packed.MedianFields

// storedStrip is a part of a history as it was packed.
type storedStrip struct {
	first, last int64
	points      packed.Strip
	packed      []byte
	// next is the first artifact of the part behind it; 0: there is none, or this one is far from full.
	next int64
	// lost is set if the bytes cannot be read.
	lost bool
}

func (c stripChanges) writeSome(ctx context.Context, tx pgx.Tx, artifacts []int64, keys []stripKey) (without []string, err error) {
	parts, err := stripsOf(ctx, tx, artifacts, keys)
	if err != nil {
		return nil, err
	}
	var gone, written, lost stripRows
	for i, at := range keys {
		parts[i] = slices.DeleteFunc(parts[i], func(p storedStrip) bool {
			if p.lost {
				lost.add(at, p.first, p.last, nil)
				without = append(without, fmt.Sprintf("the history of series %d on %s from artifact %d to %d", at.Series, surroundingText(at.Surrounding), p.first, p.last))
			}
			return p.lost
		})
		for _, change := range changeParts(fullPart(at.Series), parts[i], c[at]) {
			kept := make(map[int64]bool, len(change.after))
			for _, part := range change.after {
				b, err := part.Pack()
				if err != nil {
					return nil, fmt.Errorf("the history of series %d: %w", at.Series, err)
				}
				kept[part[0].Artifact] = true
				if part[0].Artifact != change.before.first || !bytes.Equal(b, change.before.packed) {
					written.addPart(at, part, b)
				}
			}
			if change.before.packed != nil && !kept[change.before.first] {
				gone.add(at, change.before.first, 0, nil)
			}
		}
	}
	if err := lost.derivedAnew(ctx, tx, artifacts); err != nil {
		return nil, err
	}
	if err := gone.remove(ctx, tx); err != nil {
		return nil, err
	}
	return without, written.put(ctx, tx)
}

// stripRows holds rows of the table as parallel arrays.
type stripRows struct {
	series, firsts, lasts []int64
	classes               []int
	hardware              []string
	coLocated             []bool
	packed, rest          [][]byte
	points, spread        []*int
}

// addPart adds a part of a history with the bytes that it is packed to.
func (r *stripRows) addPart(at stripKey, part packed.Strip, b []byte) {
	var spread *int
	var rest []byte // of all bytes; nil: there is none
	if points, known := part.Spread(); known {
		spread = &points
		shown := len(b) - shownFields.Spare()*points
		b, rest = b[:shown], b[shown:]
	}
	r.add(at, part[0].Artifact, part[len(part)-1].Artifact, b)
	r.rest, r.points, r.spread = append(r.rest, rest), append(r.points, new(len(part))), append(r.spread, spread)
}

func (r *stripRows) add(at stripKey, first, last int64, b []byte) {
	r.series, r.classes, r.hardware = append(r.series, at.Series), append(r.classes, int(at.SizeClass)), append(r.hardware, at.HardwareID)
	r.coLocated, r.firsts, r.lasts = append(r.coLocated, at.CoLocated), append(r.firsts, first), append(r.lasts, last)
	r.packed = append(r.packed, b)
}

func (r *stripRows) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"series": r.series, "classes": r.classes, "hardware": r.hardware, "co_located": r.coLocated,
		"firsts": r.firsts, "lasts": r.lasts, "packed": r.packed, "rest": r.rest, "points": r.points, "spread": r.spread,
	}
}

// remove deletes rows.
func (r *stripRows) remove(ctx context.Context, tx pgx.Tx) error {
	if len(r.series) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		delete from strip s using unnest(@series::bigint[], @classes::int[], @hardware::text[], @co_located::boolean[], @firsts::bigint[])
			as t (series_id, size_class, hardware_id, co_located, first_artifact)
		where (s.series_id, s.size_class, s.hardware_id, s.co_located, s.first_artifact) =
			(t.series_id, t.size_class, t.hardware_id, t.co_located, t.first_artifact)`, r.args())
	return err
}

// put inserts or replaces rows.
func (r *stripRows) put(ctx context.Context, tx pgx.Tx) error {
	if len(r.series) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		insert into strip (series_id, size_class, hardware_id, co_located, first_artifact, last_artifact, packed, rest, points, spread)
		select * from unnest(@series::bigint[], @classes::int[], @hardware::text[], @co_located::boolean[], @firsts::bigint[], @lasts::bigint[], @packed::bytea[],
			@rest::bytea[], @points::int[], @spread::int[])
		on conflict (series_id, size_class, hardware_id, co_located, first_artifact) do update set
			last_artifact = excluded.last_artifact, packed = excluded.packed, rest = excluded.rest, points = excluded.points, spread = excluded.spread`, r.args())
	return err
}

// derivedAnew deletes rows that cannot be read, and marks the artifacts that may have points
// there. Artifacts that are being packed write their own points.
func (r *stripRows) derivedAnew(ctx context.Context, tx pgx.Tx, packing []int64) error {
	if len(r.series) == 0 {
		return nil
	}
	args := r.args()
	args["packing"] = packing
	if _, err := tx.Exec(ctx, `
		insert into stale_result (artifact_id)
		select distinct s.artifact_id
		from unnest(@series::bigint[], @classes::int[], @hardware::text[], @co_located::boolean[], @firsts::bigint[], @lasts::bigint[])
			as t (series_id, size_class, hardware_id, co_located, first_artifact, last_artifact)
		join pstat_series se on se.id = t.series_id join test_case tc on tc.id = se.test_case_id
		join artifact a on a.project = tc.project and a.id between t.first_artifact and t.last_artifact
		join sheet s on s.artifact_id = a.id and (s.size_class, s.hardware_id, s.co_located) = (t.size_class, t.hardware_id, t.co_located)
		where s.artifact_id <> all(@packing::bigint[])`, args); err != nil {
		return err
	}
	return r.remove(ctx, tx)
}

// stripsOf reads, for each history, the parts in which the artifacts lie or would lie: the
// last one that begins before the artifact, else the first one. Of parts that may become full
// with them, it also reads the full ones next to them.
func stripsOf(ctx context.Context, tx pgx.Tx, artifacts []int64, keys []stripKey) ([][]storedStrip, error) {
	var asked stripRows
	for _, at := range keys {
		asked.add(at, 0, 0, nil)
	}
	args := asked.args()
	args["artifacts"], args["fullest"], args["spread"], args["most"] = artifacts, fullest, fullestSpread, longestPart
	type row struct {
		Place         int
		FirstArtifact int64
		LastArtifact  int64
		Packed        []byte
		Next          int64
	}
	rows, err := all[row](ctx, tx, `
		with asked as materialized (
			select k.*, (k.n - 1)::int as place, @fullest::int - k.series_id % @spread::int as full
			from unnest(@series::bigint[], @classes::int[], @hardware::text[], @co_located::boolean[]) with ordinality
				as k (series_id, size_class, hardware_id, co_located, n)
		), part as materialized (
			select distinct k.series_id, k.size_class, k.hardware_id, k.co_located, k.place, k.full, coalesce(
				(select s.first_artifact from strip s
					where s.series_id = k.series_id and s.size_class = k.size_class and s.hardware_id = k.hardware_id and s.co_located = k.co_located
						and s.first_artifact <= a.id order by s.first_artifact desc limit 1),
				(select s.first_artifact from strip s
					where s.series_id = k.series_id and s.size_class = k.size_class and s.hardware_id = k.hardware_id and s.co_located = k.co_located
					order by s.first_artifact limit 1)) as first_artifact
			from asked k cross join unnest(@artifacts::bigint[]) as a (id)
		), filling as materialized (
			select k.* from part k join strip s using (series_id, size_class, hardware_id, co_located, first_artifact)
			where s.points < k.full and s.points + cardinality(@artifacts::bigint[]) >= k.full
		), wanted as (
			select * from part
			union
			select k.series_id, k.size_class, k.hardware_id, k.co_located, k.place, k.full, n.first_artifact from filling k cross join lateral (
				(select s.first_artifact, s.points from strip s
					where s.series_id = k.series_id and s.size_class = k.size_class and s.hardware_id = k.hardware_id and s.co_located = k.co_located
						and s.first_artifact < k.first_artifact order by s.first_artifact desc limit 1)
				union all
				(select s.first_artifact, s.points from strip s
					where s.series_id = k.series_id and s.size_class = k.size_class and s.hardware_id = k.hardware_id and s.co_located = k.co_located
						and s.first_artifact > k.first_artifact order by s.first_artifact limit 1)
			) n where n.points between k.full and @most - k.full
		)
		select p.place, s.first_artifact, s.last_artifact, `+wholePart+` as packed, coalesce(case when s.points + cardinality(@artifacts::bigint[]) >= p.full then (
				select min(n.first_artifact) from strip n
				where n.series_id = s.series_id and n.size_class = s.size_class and n.hardware_id = s.hardware_id and n.co_located = s.co_located
					and n.first_artifact > s.first_artifact) end, 0) as next
		from wanted p join strip s using (series_id, size_class, hardware_id, co_located, first_artifact)
		order by p.place, s.first_artifact`, args)
	if err != nil {
		return nil, err
	}
	parts := make([][]storedStrip, len(keys))
	for _, r := range rows {
		points, err := packed.UnpackStrip(r.Packed)
		parts[r.Place] = append(parts[r.Place], storedStrip{r.FirstArtifact, r.LastArtifact, points, r.Packed, r.Next, err != nil})
	}
	return parts, nil
}

// wholePart selects all bytes of a row s of the table.
const wholePart = `s.packed || coalesce(s.rest, '')`

// partChange replaces one part of a history.
type partChange struct {
	before storedStrip // without bytes: there was none
	after  []packed.Strip
}

// changeParts applies changes to the parts of a history, by ascending artifact, which are full
// with a number of points.
func changeParts(full int, parts []storedStrip, points map[int64]*packed.Point) []partChange {
	if len(parts) == 0 {
		parts = []storedStrip{{}}
	}
	byPart := make([]map[int64]*packed.Point, len(parts))
	for artifact, p := range points {
		i := max(0, sortedBefore(parts, artifact))
		if byPart[i] == nil {
			byPart[i] = make(map[int64]*packed.Point)
		}
		byPart[i][artifact] = p
	}
	var changes []partChange
	for i, part := range parts {
		one := partChange{part, part.changed(full, byPart[i])}
		if i > 0 && parts[i-1].next == part.first {
			joinParts(full, &changes[i-1], &one)
		}
		changes = append(changes, one)
	}
	return changes
}

// joinParts makes the full parts one that meet where one stored part follows another, if they
// fit into one. The first of them stays where it is, unless it is new.
func joinParts(full int, before, behind *partChange) {
	n := len(before.after)
	if n == 0 || len(behind.after) == 0 {
		return
	}
	one, next := before.after[n-1], behind.after[0]
	if len(one) < full || len(next) < full || len(one)+len(next) > longestPart {
		return
	}
	before.after[n-1] = slices.Concat(one, next)
	behind.after = behind.after[1:]
}

// sortedBefore returns the index of the last part that begins with or before an artifact,
// -1 if there is none.
func sortedBefore(parts []storedStrip, artifact int64) int {
	i, found := slices.BinarySearchFunc(parts, artifact, func(p storedStrip, id int64) int { return cmp.Compare(p.first, id) })
	if found {
		return i
	}
	return i - 1
}

// changed returns what a part becomes. It grows at its ends until it is full; then points
// behind its end, or before its beginning, begin parts of their own. A part that grows too long
// in the middle is split evenly.
func (s storedStrip) changed(full int, points map[int64]*packed.Point) []packed.Strip {
	var all packed.Strip
	for _, p := range s.points {
		if _, changed := points[p.Artifact]; !changed {
			all = append(all, p)
		}
	}
	added, behind, before := false, true, true
	for artifact, p := range points {
		if p == nil {
			continue
		}
		all, added = append(all, *p), true
		if n := len(s.points); n > 0 {
			behind = behind && artifact >= s.points[n-1].Artifact
			before = before && artifact <= s.points[0].Artifact
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b packed.Point) int { return cmp.Compare(a.Artifact, b.Artifact) })
	n := len(all)
	// What the part has, or may have until it is full.
	own := min(n, max(full, len(s.points)))
	switch {
	case n == own || !added:
		return []packed.Strip{all}
	case behind:
		return append([]packed.Strip{all[:own:own]}, slices.Collect(slices.Chunk(all[own:], full))...)
	case before:
		front := n - own
		parts := []packed.Strip{}
		if rest := front % full; rest > 0 {
			parts = append(parts, all[:rest:rest])
		}
		return append(append(parts, slices.Collect(slices.Chunk(all[front%full:front], full))...), all[front:])
	case n <= longestPart:
		return []packed.Strip{all}
	default:
		several := (n + longestPart - 1) / longestPart
		return slices.Collect(slices.Chunk(all, (n+several-1)/several))
	}
}
