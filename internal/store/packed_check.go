package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/packed"
)

// PackedCheck is the outcome of comparing some artifacts' packed results with the rows of
// their results.
type PackedCheck struct {
	// Artifacts counts the artifacts, Stale those among them that are read from their rows and not compared.
	Artifacts, Stale int
	// Sheets and Points count those that agree.
	Sheets, Points int
	// Differences names those that do not, at most [shownDifferences].
	Differences []string
	// Next is the ID of the last artifact; 0: there are no more.
	Next int64
}

// shownDifferences bounds the differences that one call names.
const shownDifferences = 1000

func (c *PackedCheck) differs(format string, args ...any) {
	if len(c.Differences) < shownDifferences {
		c.Differences = append(c.Differences, fmt.Sprintf(format, args...))
	}
}

// measuredArtifact matches an artifact a that has, or had, results to pack.
const measuredArtifact = `not exists (select from job_queue j where j.artifact_id = a.id and j.kind = 'command')
	and (exists (select from test_result r where r.artifact_id = a.id) or exists (select from sheet s where s.artifact_id = a.id))`

// CheckPacked compares the packed results of artifacts of a project with the rows of their
// results: at most most of them, by ID after the given one. It reads one state of the
// record.
func (s *Store) CheckPacked(ctx context.Context, project string, after int64, most int) (c PackedCheck, err error) {
	err = s.reading(ctx, func(tx pgx.Tx) error {
		type artifact struct {
			ID     int64
			Tag    string
			Stale  bool
			Tries  int // failed attempts to pack it
			Reason string
		}
		some, err := all[artifact](ctx, tx, `
			select a.id, a.tag, exists (select from stale_result m where m.artifact_id = a.id) as stale, coalesce(f.tries, 0) as tries, coalesce(f.reason, '') as reason
			from artifact a left join pack_failure f on f.artifact_id = a.id
			where a.project = $1 and a.id > $2 and `+measuredArtifact+` order by a.id limit $3`, project, after, most)
		if err != nil {
			return err
		}
		check := packedCheck{PackedCheck: &c, tags: make(map[int64]string), stale: make(map[int64]bool), points: make(map[stripKey]map[int64]packed.Point)}
		// Points of artifacts that have no results any more are in the way, too.
		end := int64(math.MaxInt64)
		if len(some) == most {
			end = some[most-1].ID
			c.Next = end
		}
		for _, a := range some {
			c.Artifacts++
			check.tags[a.ID] = a.Tag
			if a.Tries > 0 {
				check.differs("artifact %s is read from its rows, as it could not be packed, %s by now: %s", a.Tag, count(a.Tries, "time"), a.Reason)
			}
			if a.Stale {
				c.Stale++
				check.stale[a.ID] = true
			} else if err := check.sheets(ctx, tx, a.ID); err != nil {
				return err
			}
		}
		return check.strips(ctx, tx, project, after, end)
	})
	return c, wrap("checking the packed results of project "+project, err)
}

// packedCheck is a check in progress.
type packedCheck struct {
	*PackedCheck
	tags   map[int64]string
	stale  map[int64]bool
	points map[stripKey]map[int64]packed.Point // that are still to be found
}

// sheets compares the sheets of an artifact with its rows, which determine its points.
func (c *packedCheck) sheets(ctx context.Context, tx pgx.Tx, artifact int64) error {
	want, err := rawSheets(ctx, tx, artifact)
	if err != nil {
		return err
	}
	stored, err := storedSheets(ctx, tx, artifact)
	if err != nil {
		return err
	}
	for _, at := range slices.SortedFunc(maps.Keys(stored), compareSheetKeys) {
		if _, known := want[at]; !known {
			c.differs("artifact %s has a sheet of %s, and no results of it", c.tags[artifact], at)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(want), compareSheetKeys) {
		sheet := want[at]
		b, err := sheet.Pack()
		if err != nil {
			c.differs("artifact %s has results of %s that cannot be packed: %v", c.tags[artifact], at, err)
			continue
		}
		switch was, there := stored[at]; {
		case !there:
			c.differs("artifact %s has results of %s, and no sheet of them", c.tags[artifact], at)
		case !was.is(sheet, b):
			c.differs("artifact %s has a sheet of %s that is not that of its results", c.tags[artifact], at)
		default:
			c.Sheets++
		}
		for _, series := range sheet {
			at := stripKey{series.ID, at.Surrounding}
			if c.points[at] == nil {
				c.points[at] = make(map[int64]packed.Point)
			}
			c.points[at][artifact] = packed.NewPoint(artifact, &series)
		}
	}
	return nil
}

// strips compares the points of the artifacts after one, up to another, with those of
// their results.
func (c *packedCheck) strips(ctx context.Context, tx pgx.Tx, project string, after, end int64) error {
	rows, err := tx.Query(ctx, `
		select s.series_id, s.size_class, s.hardware_id, s.co_located, s.first_artifact, s.last_artifact, `+wholePart+` as packed
		from strip s join pstat_series se on se.id = s.series_id join test_case tc on tc.id = se.test_case_id
		where tc.project = $1 and s.first_artifact <= $3 and s.last_artifact > $2
		order by s.series_id, s.size_class, s.hardware_id, s.co_located, s.first_artifact`, project, after, end)
	if err != nil {
		return err
	}
	defer rows.Close()
	var before stripRow
	for rows.Next() {
		r, err := pgx.RowToStructByName[stripRow](rows)
		if err != nil {
			return err
		}
		if r.key() == before.key() && r.FirstArtifact <= before.LastArtifact {
			c.differs("parts of the history of series %d on %s overlap at artifact %d", r.SeriesID, surroundingText(r.Surrounding), r.FirstArtifact)
		}
		before = r
		c.strip(r, after, end)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.points), compareStripKeys) {
		for _, artifact := range slices.Sorted(maps.Keys(c.points[at])) {
			c.differs("the history of series %d on %s lacks artifact %s", at.Series, surroundingText(at.Surrounding), c.tags[artifact])
		}
	}
	return nil
}

func (c *packedCheck) strip(r stripRow, after, end int64) {
	points, err := packed.UnpackStrip(r.Packed)
	if err != nil || len(points) == 0 || points[0].Artifact != r.FirstArtifact || points[len(points)-1].Artifact != r.LastArtifact {
		c.differs("the history of series %d on %s from artifact %d to %d cannot be read, or has other artifacts", r.SeriesID, surroundingText(r.Surrounding), r.FirstArtifact, r.LastArtifact)
		return
	}
	for _, p := range points {
		if p.Artifact <= after || p.Artifact > end || c.stale[p.Artifact] {
			continue
		}
		want, known := c.points[r.key()][p.Artifact]
		switch {
		case !known:
			c.differs("the history of series %d on %s has a point of artifact %s without results, or two of it", r.SeriesID, surroundingText(r.Surrounding), cmp.Or(c.tags[p.Artifact], fmt.Sprint(p.Artifact)))
			continue
		case !samePoint(want, p):
			c.differs("the history of series %d on %s has a point of artifact %s that is not that of its results", r.SeriesID, surroundingText(r.Surrounding), c.tags[p.Artifact])
		default:
			c.Points++
		}
		delete(c.points[r.key()], p.Artifact)
	}
}

// samePoint compares points by their bytes: NaN equals itself there, and 0 is not -0.
func samePoint(a, b packed.Point) bool {
	x, errX := packed.Strip{a}.Pack()
	y, errY := packed.Strip{b}.Pack()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// RebuildPacked discards the packed results of a project and has all of them packed
// anew: until [Store.PackResults] has done so, they are read from their rows.
func (s *Store) RebuildPacked(ctx context.Context, project string, act Act) (Operation, error) {
	what := Operation{Action: "results rebuild", Project: project, Subject: project}
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		if err := lock(ctx, tx, "packed results of "+project); err != nil {
			return OperationResult{}, err
		}
		for _, sql := range []string{
			`delete from strip where series_id in (select se.id from pstat_series se join test_case tc on tc.id = se.test_case_id where tc.project = $1)`,
			`delete from sheet where artifact_id in (select id from artifact where project = $1)`,
			`delete from pack_failure where artifact_id in (select id from artifact where project = $1)`,
		} {
			if _, err := tx.Exec(ctx, sql, project); err != nil {
				return OperationResult{}, err
			}
		}
		marked, err := tx.Exec(ctx, `
			insert into stale_result (artifact_id) select a.id from artifact a where a.project = $1 and `+measuredArtifact, project)
		if err != nil {
			return OperationResult{}, err
		}
		n := int(marked.RowsAffected())
		return OperationResult{Changed: n > 0, Message: count(n, "artifact") + " to pack anew"}, nil
	})
}
