package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/packed"
)

// PackSheets packs sheets in place of those of artifacts of a project, with the points of
// their histories, all or nothing. It does not look at the rows of results, from which
// [Store.PackResults] makes sheets: it is for a record that is made to measure pages, too
// large to hold all its rows. Call it with few artifacts at once; all are in memory. The
// error wraps [ErrNotFound] if one is unknown; after a [PackError] they are packed.
func (s *Store) PackSheets(ctx context.Context, project string, artifacts []ArtifactSheets) error {
	tags := make([]string, len(artifacts))
	for i, a := range artifacts {
		tags[i] = a.Tag
	}
	var met PackError
	err := pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "packed results of "+project); err != nil {
			return err
		}
		ids, err := artifactIDs(ctx, tx, project, tags)
		if err != nil {
			return err
		}
		sheets := make(map[int64]map[sheetKey]packed.Sheet, len(ids))
		for i, id := range ids {
			if id == 0 {
				return fmt.Errorf("artifact %s: %w", tags[i], ErrNotFound)
			}
			sheets[id] = make(map[sheetKey]packed.Sheet)
			for _, sheet := range artifacts[i].Sheets {
				sheets[id][sheetKey{sheet.Metric, sheet.Surrounding}] = sheet.Sheet
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		changes := make(stripChanges)
		for _, id := range ids {
			if _, err := repack(ctx, tx, project, id, sheets[id], changes); err != nil {
				return err
			}
		}
		met.Lost, err = changes.write(ctx, tx, ids)
		return err
	})
	if err == nil {
		err = met.told()
	}
	return wrap("packing sheets of project "+project, err)
}
