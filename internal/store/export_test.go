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
