package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

const (
	// packedAtOnce bounds the artifacts of one transaction: their sheets are in memory, and
	// each strip is written once for all of them.
	packedAtOnce = 16
	// packUnended is the time in minutes without a new result after which an artifact is
	// packed although jobs of it are open, such as those that no machine can run.
	packUnended = 10
)

// duePacking selects the IDs of artifacts whose results have changed and are worth packing:
// while an artifact is measured, each block would cost as much as all of them.
const duePacking = `
	select m.artifact_id from (select artifact_id, max(at) as at from stale_result group by artifact_id) m
	where m.at < now() - make_interval(mins => @unended) or not exists (
		select from job_queue j where j.artifact_id = m.artifact_id and j.kind <> 'build' and j.status in ('queued', 'handed_out', 'in_progress'))`

// ProjectsToPack lists the projects that have results to pack.
func (s *Store) ProjectsToPack(ctx context.Context) ([]string, error) {
	projects, err := column[string](ctx, s.pool, `
		select distinct a.project from artifact a where a.id in (`+duePacking+`) order by a.project`, pgx.NamedArgs{"unended": packUnended})
	return projects, wrap("listing the projects with results to pack", err)
}

// PackResults packs the results of some artifacts of a project that have changed, the
// newest first, in one transaction. It returns the number of artifacts; 0 if none is due,
// or another call packs those of the project. Killed at any point, it leaves all or nothing.
func (s *Store) PackResults(ctx context.Context, project string) (artifacts int, err error) {
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		// Two that pack would write the same strips.
		free, err := value[bool](ctx, tx, `select pg_try_advisory_xact_lock(hashtextextended('benchloom packed results of ' || $1, 0))`, project)
		if err != nil || !free {
			return err
		}
		due, err := column[int64](ctx, tx, `
			select a.id from artifact a where a.project = @project and a.id in (`+duePacking+`) order by a.id desc limit @most`,
			pgx.NamedArgs{"project": project, "unended": packUnended, "most": packedAtOnce})
		if err != nil || len(due) == 0 {
			return err
		}
		artifacts = len(due)
		slices.Sort(due)
		return pack(ctx, tx, due)
	})
	return artifacts, wrap("packing the results of project "+project, err)
}

// pack packs artifacts, by ascending ID. The marks that it removes are of changes that its
// later statements see; a change that commits meanwhile has a mark that stays.
func pack(ctx context.Context, tx pgx.Tx, artifacts []int64) error {
	if _, err := tx.Exec(ctx, `delete from stale_result where artifact_id = any($1)`, artifacts); err != nil {
		return err
	}
	return repack(ctx, tx, artifacts, func(artifact int64) (map[sheetKey]packed.Sheet, error) { return rawSheets(ctx, tx, artifact) })
}

// repack replaces what is packed of artifacts, by ascending ID, by the sheets that of returns.
func repack(ctx context.Context, tx pgx.Tx, artifacts []int64, of func(artifact int64) (map[sheetKey]packed.Sheet, error)) error {
	changes := make(stripChanges)
	for _, artifact := range artifacts {
		sheets, err := of(artifact)
		if err != nil {
			return err
		}
		former, err := storedSheets(ctx, tx, artifact)
		if err != nil {
			return err
		}
		for at, sheet := range former {
			changes.remove(artifact, at, sheet)
		}
		for at, sheet := range sheets {
			changes.add(artifact, at, sheet)
		}
		if err := writeSheets(ctx, tx, artifact, former, sheets); err != nil {
			return err
		}
	}
	return changes.write(ctx, tx, artifacts)
}

// sheetKey tells the sheets of an artifact from each other.
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

// rawSeries is a series of an artifact as its rows say.
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
			batch.Queue(`delete from sheet where artifact_id = $1 and (metric, size_class, hardware_id, co_located) = ($2, $3, $4, $5)`,
				artifact, at.Metric, at.SizeClass, at.HardwareID, at.CoLocated)
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
