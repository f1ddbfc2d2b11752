package store

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// partBytes is the size of a part of a history, about.
const partBytes = 53 * packed.MaxPoints

// sheets hands over the histories of many series on few artifacts, which sheets hold in
// fewer bytes than parts: those have 80 points each, of which a few would be wanted. It
// returns false if parts are the better choice, or a sheet cannot be read; then it has
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
	if len(g.artifacts) == 0 || parts <= len(g.artifacts)*len(metrics) {
		return false, nil
	}
	bytes, err := value[int](ctx, tx, `select coalesce(sum(octet_length(packed)), 0) from sheet where artifact_id = any($1) and metric = any($2)`, g.artifacts, metrics)
	if err != nil || bytes > parts*partBytes {
		return false, err
	}
	rows, err := tx.Query(ctx, `
		select artifact_id, size_class, hardware_id, co_located, packed from sheet
		where artifact_id = any($1) and metric = any($2) order by artifact_id`, g.artifacts, metrics)
	if err != nil {
		return false, err
	}
	found := make([][]History, len(series)) // by the place of the series
	var row sheetRow
	unpacked := (*pgtype.DriverBytes)(&row.Packed) // not copied
	_, err = pgx.ForEachRow(rows, []any{&row.ArtifactID, &row.SizeClass, &row.HardwareID, &row.CoLocated, unpacked}, func() error {
		sheet, err := packed.UnpackSheet(row.Packed)
		if err != nil {
			return err
		}
		i := 0
		for k := range sheet {
			s := &sheet[k]
			for i < len(series) && series[i] < s.ID {
				i++
			}
			if i < len(series) && series[i] == s.ID {
				addPoint(&found[i], s, row, len(g.artifacts))
			}
		}
		return nil
	})
	if errors.Is(err, packed.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i, of := range found {
		if len(of) == 0 {
			continue
		}
		g.of = of
		if err := g.end(series[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// addPoint adds the point of an artifact to the history of its surrounding, which has at most
// most of them.
func addPoint(of *[]History, s *packed.Series, row sheetRow, most int) {
	i := slices.IndexFunc(*of, func(h History) bool { return h.Surrounding == row.Surrounding })
	if i < 0 {
		i = len(*of)
		*of = append(*of, History{Series: s.ID, Surrounding: row.Surrounding, Points: make(packed.Strip, 0, most)})
	}
	h := &(*of)[i]
	h.Points = append(h.Points, packed.NewPoint(row.ArtifactID, s))
}
