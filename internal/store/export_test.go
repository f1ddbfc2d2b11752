package store

import (
	"context"
	"log/slog"
	"time"
)

// MigrateTo migrates up to a version.
func MigrateTo(ctx context.Context, url string, version int64) error {
	return migrate(ctx, url, version)
}

// WatchSchemaEvery is [Store.WatchSchema] with another interval.
func (s *Store) WatchSchemaEvery(ctx context.Context, every time.Duration, log *slog.Logger) error {
	return s.watchSchema(ctx, every, log)
}

// PackPoints is [Store.PackResults] with another bound of points.
func (s *Store) PackPoints(ctx context.Context, project string, points int) (artifacts int, err error) {
	return s.packResults(ctx, packing{project: project, points: points})
}
