package store

import (
	"context"
	"encoding/json"
	"time"
)

// SizeRecord is what is stored of how large a machine the jobs of a shape need.
type SizeRecord struct {
	Project string
	Shape   string
	Version int64
	// Statistics are a document of sizeclass, About one of what the shape is.
	Statistics json.RawMessage
	About      json.RawMessage
	UpdatedAt  time.Time
}

const sizeRecordColumns = `project, shape, version, statistics, about, updated_at`

// SizeRecords lists what is known of a project's shapes, of all projects when it is
// empty: what was learned of last first.
func (s *Store) SizeRecords(ctx context.Context, project string, limit int) ([]SizeRecord, error) {
	rs, err := all[SizeRecord](ctx, s.pool, `
		select `+sizeRecordColumns+` from size_statistics where $1 in (project, '') order by updated_at desc, project, shape limit $2`, project, limit)
	return rs, wrap("listing size statistics", err)
}

// SizeRecordsOf are the records of a shape: one for each project that has it.
func (s *Store) SizeRecordsOf(ctx context.Context, shape string) ([]SizeRecord, error) {
	rs, err := all[SizeRecord](ctx, s.pool, `select `+sizeRecordColumns+` from size_statistics where shape = $1 order by project`, shape)
	return rs, wrap("reading the size statistics of "+shape, err)
}
