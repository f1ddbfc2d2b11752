package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

const (
	// packedAtOnce bounds the artifacts of one transaction, which writes each strip once for
	// all of them.
	packedAtOnce = 16
	// pointsAtOnce bounds the points of histories that one transaction changes, and so its
	// memory: no artifact is begun after that many. The number is that of 16 artifacts of
	// 5,600 series.
	pointsAtOnce = 90_000
	// packUnended is the time in minutes without a new result after which an artifact is
	// packed although some of its jobs are open, such as those that no machine can run.
	packUnended = 10
)

// duePacking selects the IDs of artifacts whose results have changed and are worth packing:
// while an artifact is being measured, packing each block would cost as much as packing all
// of them. An artifact that could not be packed waits, unless its results have changed since.
const duePacking = `
	select m.artifact_id from (select artifact_id, max(at) as at from stale_result group by artifact_id) m
	where (m.at < now() - make_interval(mins => @unended) or not exists (
			select from job_queue j where j.artifact_id = m.artifact_id and j.kind <> 'build' and j.status in ('queued', 'handed_out', 'in_progress')))
		and not exists (select from pack_failure f where f.artifact_id = m.artifact_id and f.failed_at >= m.at and f.retry_at > now())`

// ProjectsToPack lists the projects that have results to pack.
func (s *Store) ProjectsToPack(ctx context.Context) ([]string, error) {
	projects, err := column[string](ctx, s.pool, `
		select distinct a.project from artifact a where a.id in (`+duePacking+`) order by a.project`, pgx.NamedArgs{"unended": packUnended})
	return projects, wrap("listing the projects with results to pack", err)
}

// PackResults packs the changed results of some artifacts of a project, the newest first, in
// one transaction. It returns the number of artifacts tried; 0 if none is due, or if another
// call is packing those of the project. Killed at any point, it leaves all or nothing. A
// [PackError] lists the failures that did not stop it: call it again.
func (s *Store) PackResults(ctx context.Context, project string) (artifacts int, err error) {
	return s.packResults(ctx, packing{project: project, points: pointsAtOnce})
}

// PackArtifact packs the results of one artifact, if due, as [Store.PackResults] does, and
// waits for other calls that pack results of the project.
func (s *Store) PackArtifact(ctx context.Context, project, tag string) (artifacts int, err error) {
	return s.packResults(ctx, packing{project: project, tag: tag, points: pointsAtOnce})
}

func (s *Store) packResults(ctx context.Context, p packing) (artifacts int, err error) {
	doing := "packing the results of project " + p.project
	for _, p.most = range []int{packedAtOnce, 1} {
		p.packed, p.met, p.blamed = nil, PackError{}, false
		err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error { return p.run(ctx, tx) })
		if err == nil {
			return len(p.packed) + len(p.met.Artifacts), wrap(doing, p.met.told())
		}
		if !p.blamed {
			return 0, wrap(doing, err)
		}
		if len(p.packed) == 1 {
			break
		}
		// The histories of one of them cannot be written: pack one at a time.
	}
	met := PackError{Artifacts: []Unpackable{{p.packed[0].ID, p.packed[0].Tag, err}}}
	if err := met.record(ctx, s.reports); err != nil {
		return 0, wrap(doing, err)
	}
	return 1, wrap(doing, &met)
}

// packing is a transaction that packs results of a project.
type packing struct {
	project string
	tag     string // of the only artifact; empty: the newest ones that are due
	most    int    // artifacts
	points  int    // of histories, after which no artifact is begun

	packed []dueArtifact
	met    PackError
	// blamed is set if the transaction failed because of what it packs.
	blamed bool
}

type dueArtifact struct {
	ID  int64
	Tag string
}

// run packs artifacts. It removes only the marks of changes that its later statements
// see; the mark of a change that commits meanwhile stays.
func (p *packing) run(ctx context.Context, tx pgx.Tx) error {
	if free, err := p.lock(ctx, tx); err != nil || !free {
		return err
	}
	due, err := p.due(ctx, tx)
	if err != nil {
		return err
	}
	changes := make(stripChanges)
	points := 0
	for _, a := range due {
		if points >= p.points {
			break
		}
		// A failure undoes only this artifact.
		n := 0
		err := pgx.BeginFunc(ctx, tx, func(own pgx.Tx) (err error) {
			n, err = p.pack(ctx, own, a.ID, changes)
			return err
		})
		switch {
		case err == nil:
			p.packed = append(p.packed, a)
			points += n
		case blames(ctx, tx, err):
			p.met.Artifacts = append(p.met.Artifacts, Unpackable{a.ID, a.Tag, err})
			changes.forget(a.ID)
		default:
			return err
		}
	}
	ids := make([]int64, len(p.packed))
	for i, a := range p.packed {
		ids[i] = a.ID
	}
	if p.met.Lost, err = changes.write(ctx, tx, ids); err != nil {
		p.blamed = blames(ctx, tx, err)
		return err
	}
	if _, err := tx.Exec(ctx, `delete from pack_failure where artifact_id = any($1)`, ids); err != nil {
		return err
	}
	return p.met.record(ctx, tx)
}

// lock lets one call at a time pack results of a project: two would write the same strips.
func (p *packing) lock(ctx context.Context, tx pgx.Tx) (free bool, err error) {
	name := "packed results of " + p.project
	if p.tag != "" {
		return true, lock(ctx, tx, name)
	}
	return value[bool](ctx, tx, `select pg_try_advisory_xact_lock(hashtextextended('benchloom ' || $1, 0))`, name)
}

// due lists artifacts to pack, the newest first. They are close enough that their points
// lie in a few parts of each history: parts are read and written whole, and scattered
// artifacts would need many.
func (p *packing) due(ctx context.Context, tx pgx.Tx) ([]dueArtifact, error) {
	return all[dueArtifact](ctx, tx, `
		with due as materialized (
			select a.id, a.tag from artifact a where a.project = @project and (@tag = '' or a.tag = @tag) and a.id in (`+duePacking+`)
		), near as (
			select a.id from artifact a where a.project = @project and a.id <= (select max(id) from due) order by a.id desc limit @near
		)
		select id, tag from due where id >= (select min(id) from near) order by id desc limit @most`,
		pgx.NamedArgs{"project": p.project, "tag": p.tag, "unended": packUnended, "near": fullest, "most": p.most})
}

// pack packs an artifact from its rows, and notes the changes to histories: at least n points.
func (p *packing) pack(ctx context.Context, tx pgx.Tx, artifact int64, changes stripChanges) (n int, err error) {
	if _, err := tx.Exec(ctx, `delete from stale_result where artifact_id = $1`, artifact); err != nil {
		return 0, err
	}
	sheets, err := rawSheets(ctx, tx, artifact)
	if err != nil {
		return 0, err
	}
	return repack(ctx, tx, p.project, artifact, sheets, changes)
}

// repack replaces the sheets of an artifact, and notes the changes to histories: at least n
// points.
func repack(ctx context.Context, tx pgx.Tx, project string, artifact int64, sheets map[sheetKey]packed.Sheet, changes stripChanges) (n int, err error) {
	former, err := storedSheets(ctx, tx, artifact)
	if err != nil {
		return 0, err
	}
	gone := 0
	for at, sheet := range former {
		if sheet.Sheet == nil { // which histories have its points is unknown
			if err := changes.removeAll(ctx, tx, project, artifact, at.Surrounding); err != nil {
				return 0, err
			}
		}
		changes.remove(artifact, at, sheet)
		gone += len(sheet.Sheet)
	}
	for at, sheet := range sheets {
		changes.add(artifact, at, sheet)
		n += len(sheet)
	}
	return max(n, gone), writeSheets(ctx, tx, artifact, former, sheets)
}

// sheetKey identifies a sheet of an artifact.
type sheetKey struct {
	Metric bench.Metric // without a line
	bench.Surrounding
}

func (k sheetKey) String() string {
	return fmt.Sprintf("%s on %s", k.Metric, surroundingText(k.Surrounding))
}

func surroundingText(s bench.Surrounding) string {
	text := fmt.Sprintf("size class %d, hardware %s", s.SizeClass, s.HardwareID)
	if s.CoLocated {
		text += ", co-located"
	}
	return text
}

func compareSheetKeys(a, b sheetKey) int {
	return cmp.Or(cmp.Compare(a.Metric, b.Metric), compareSurroundings(a.Surrounding, b.Surrounding))
}

func compareSurroundings(a, b bench.Surrounding) int {
	return cmp.Or(cmp.Compare(a.SizeClass, b.SizeClass), cmp.Compare(a.HardwareID, b.HardwareID), cmp.Compare(number(a.CoLocated), number(b.CoLocated)))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rawSeries is a series of an artifact as its rows have it.
type rawSeries struct {
	ArtifactID int64
	SeriesID   int64
	Metric     bench.Metric
	bench.Surrounding
	Kind        bench.JobKind
	Segment     bench.Segment
	Suite       string
	DisturbedBy string
	Values      []float64
	Iterations  []int
	Disturbed   []bool
}

func (r rawSeries) series() packed.Series {
	return packed.Series{
		ID: r.SeriesID, Origin: packed.Origin{Kind: r.Kind, Segment: r.Segment, Suite: r.Suite, DisturbedBy: r.DisturbedBy},
		Values: r.Values, Iterations: r.Iterations, Disturbed: r.Disturbed,
	}
}

// rawOf selects what is packed of latest results r; a condition follows, then [rawGroups].
const rawOf = `
	select r.artifact_id, p.series_id, se.metric, r.size_class, r.hardware_id, r.co_located, j.kind, n.segment, coalesce(j.suite_hash, '') as suite,
		coalesce(mode() within group (order by nullif(split_part(c.disturbed, ':', 1), '')), '') as disturbed_by,
		array_agg(p.value order by c.iteration) as values, array_agg(c.iteration order by c.iteration) as iterations,
		array_agg(c.disturbed <> '' order by c.iteration) as disturbed
	from latest_result r
	join job_run n on n.id = r.run_id
	join job_queue j on j.id = n.job_id and j.kind <> 'command'
	join collection c on c.result_id = r.id
	join ` + statistics + ` p on p.collection_id = c.id
	join pstat_series se on se.id = p.series_id
	where r.status = 'ok' and `

const rawGroups = `
	group by r.id, r.artifact_id, r.size_class, r.hardware_id, r.co_located, j.kind, n.segment, j.suite_hash, p.series_id, se.metric
	order by p.series_id`

// rawSheets makes the sheets of an artifact from its rows.
func rawSheets(ctx context.Context, q querier, artifact int64) (map[sheetKey]packed.Sheet, error) {
	rows, err := all[rawSeries](ctx, q, rawOf+`r.artifact_id = $1`+rawGroups, artifact)
	sheets := make(map[sheetKey]packed.Sheet)
	for _, r := range rows {
		_, unit := r.Metric.Split()
		at := sheetKey{unit, r.Surrounding}
		sheets[at] = append(sheets[at], r.series())
	}
	return sheets, err
}

// storedSheet is a row of the table; its sheet is nil if the bytes are of another version.
type storedSheet struct {
	packed.Sheet
	Series  int
	NValues int
	Packed  []byte
}

// storedSheets reads the sheets of an artifact as they were packed.
func storedSheets(ctx context.Context, q querier, artifact int64) (map[sheetKey]storedSheet, error) {
	type row struct {
		Metric bench.Metric
		bench.Surrounding
		Series  int
		NValues int
		Packed  []byte
	}
	rows, err := all[row](ctx, q, `
		select metric, size_class, hardware_id, co_located, series, n_values, packed from sheet where artifact_id = $1`, artifact)
	sheets := make(map[sheetKey]storedSheet, len(rows))
	for _, r := range rows {
		sheet, _ := packed.UnpackSheet(r.Packed) // one that cannot be read is replaced
		sheets[sheetKey{r.Metric, r.Surrounding}] = storedSheet{sheet, r.Series, r.NValues, r.Packed}
	}
	return sheets, err
}

// is reports whether a row of the table holds exactly a sheet, packed as b.
func (s storedSheet) is(sheet packed.Sheet, b []byte) bool {
	return bytes.Equal(s.Packed, b) && s.Series == len(sheet) && s.NValues == valuesIn(sheet)
}

func valuesIn(sheet packed.Sheet) int {
	n := 0
	for _, s := range sheet {
		n += len(s.Values)
	}
	return n
}

// writeSheets writes those sheets of an artifact that differ from the former ones.
func writeSheets(ctx context.Context, tx pgx.Tx, artifact int64, former map[sheetKey]storedSheet, sheets map[sheetKey]packed.Sheet) error {
	var batch pgx.Batch
	for at := range former {
		if _, stays := sheets[at]; !stays {
			batch.Queue(`
				delete from sheet
				where artifact_id = @artifact and (metric, size_class, hardware_id, co_located) = (@metric, @class, @hardware, @co_located)`,
				pgx.NamedArgs{
					"artifact": artifact, "metric": at.Metric, "class": at.SizeClass, "hardware": at.HardwareID, "co_located": at.CoLocated,
				})
		}
	}
	for at, sheet := range sheets {
		b, err := sheet.Pack()
		if err != nil {
			return fmt.Errorf("the results of artifact %d for %s: %w", artifact, at, err)
		}
		if was, there := former[at]; there && was.is(sheet, b) {
			continue
		}
		batch.Queue(`
			insert into sheet (artifact_id, metric, size_class, hardware_id, co_located, series, n_values, packed)
			values (@artifact, @metric, @class, @hardware, @co_located, @series, @values, @packed)
			on conflict (artifact_id, metric, size_class, hardware_id, co_located) do update set
				series = excluded.series, n_values = excluded.n_values, packed = excluded.packed`,
			pgx.NamedArgs{
				"artifact": artifact, "metric": at.Metric, "class": at.SizeClass, "hardware": at.HardwareID, "co_located": at.CoLocated,
				"series": len(sheet), "values": valuesIn(sheet), "packed": b,
			})
	}
	return tx.SendBatch(ctx, &batch).Close()
}
