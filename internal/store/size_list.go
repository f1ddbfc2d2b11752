package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// AllSizeStatistics lists the statistics of a project's shapes, or of all projects if it
// is empty, the most recently changed first.
func (s *Store) AllSizeStatistics(ctx context.Context, project string, limit int) ([]SizeStatistics, error) {
	all, err := all[SizeStatistics](ctx, s.pool, sizeStatistics+` where $1 in (project, '') order by updated_at desc, project, shape limit $2`, project, limit)
	return all, wrap("listing what is known of shapes", err)
}

// SizeStatisticsOf lists the statistics of a shape for each project that has it.
func (s *Store) SizeStatisticsOf(ctx context.Context, shape bench.Shape) ([]SizeStatistics, error) {
	all, err := all[SizeStatistics](ctx, s.pool, sizeStatistics+` where shape = $1 order by project`, shape)
	return all, wrap("reading the statistics of shape "+string(shape), err)
}
