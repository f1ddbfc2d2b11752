package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// partBytes is about the size of a part of a history.
const partBytes = 37 * longestPart

// Bounds of the sheets that are in memory at once. With more artifacts not even their sizes
// are looked at.
const (
	maxSheets     = 400
	maxSheetBytes = 8 << 20
)

// sheets hands over the histories of many series on few artifacts, which sheets hold in fewer
// bytes than parts: a part has 80 points, of which only a few would be wanted. It
// returns false if parts are the better choice, or a sheet is of another version; then it has
// handed nothing over. Series are by ascending ID.
func (g *gathering) sheets(ctx context.Context, tx pgx.Tx, series []int64, names map[int64]Series) (done bool, err error) {
	known := make(map[bench.Metric]bool)
	var metrics []string
	for _, name := range names {
		if _, unit := name.Metric.Split(); !known[unit] {
			known[unit] = true
			metrics = append(metrics, string(unit))
		}
	}
	parts := len(series) * (len(g.artifacts)/packed.MaxPoints + 2)
	if len(g.artifacts) == 0 || len(g.artifacts) > maxSheets || parts <= len(g.artifacts)*len(metrics) {
		return false, nil
	}
	bytes, err := value[int](ctx, tx, `select coalesce(sum(octet_length(packed)), 0) from sheet where artifact_id = any($1) and metric = any($2)`, g.artifacts, metrics)
	if err != nil || bytes > min(parts*partBytes, maxSheetBytes) {
		return false, err
	}
	rows, err := tx.Query(ctx, `
		select artifact_id, size_class, hardware_id, co_located, packed from sheet
		where artifact_id = any($1) and metric = any($2) order by artifact_id`, g.artifacts, metrics)
	if err != nil {
		return false, err
	}
	// The points of one series are put together at a time, in memory that is used again: the sheets are read side by side.
	type sheet struct {
		bench.Surrounding
		packed.SheetPoints
	}
	var sheets []sheet
	g.memory.bytes = slices.Grow(g.memory.bytes[:0], bytes)
	var row sheetRow
	own := (*pgtype.DriverBytes)(&row.Packed) // valid until the next row
	if _, err := pgx.ForEachRow(rows, []any{&row.ArtifactID, &row.SizeClass, &row.HardwareID, &row.CoLocated, own}, func() error {
		points, err := packed.PointsOf(row.ArtifactID, g.memory.keep(row.Packed), g.fields)
		sheets = append(sheets, sheet{row.Surrounding, points})
		return err
	}); errors.Is(err, packed.ErrCorrupt) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, id := range series {
		for i := range sheets {
			p, known, err := sheets[i].Of(id)
			if err != nil {
				return false, fmt.Errorf("the results of series %d: %w; 'benchloom results rebuild' derives them anew", id, err)
			}
			if known {
				h := g.history(stripKey{id, sheets[i].Surrounding})
				h.Points = append(h.Points, p)
			}
		}
		if len(g.of) > 0 {
			if err := g.end(id); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// history returns the history of a series in a surrounding, and begins it if there is none yet.
func (g *gathering) history(at stripKey) *History {
	for i := range g.of {
		if g.of[i].Surrounding == at.Surrounding {
			return &g.of[i]
		}
	}
	g.begin(at)
	return &g.of[len(g.of)-1]
}
