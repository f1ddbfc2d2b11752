package store

import (
	"context"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Sighting describes a run and its collector as the record sees them.
type Sighting struct {
	Run bench.Run
	// Registered reports that the collector was neither registered again nor removed since
	// the run began; Current that its last heartbeat named the run.
	Registered, Current bool
	// Silence is the time since that heartbeat, by the database's clock.
	Silence time.Duration
	// OthersBeat reports a fresh heartbeat of another collector: the API and the record
	// are not away.
	OthersBeat bool
}

// SightRun looks at a run and its collector. A heartbeat is fresh for the given time.
func (s *Store) SightRun(ctx context.Context, id bench.RunID, fresh time.Duration) (Sighting, error) {
	run, err := s.Run(ctx, id)
	if err != nil {
		return Sighting{}, err
	}
	type row struct {
		Current    bool
		Silence    float64 // in seconds
		OthersBeat bool
	}
	of, err := one[row](ctx, s.pool, `
		select c.current_run is not distinct from n.id as current, extract(epoch from now() - c.last_heartbeat)::float8 as silence,
			exists (select from collector_config o where o.name <> c.name and o.last_heartbeat > now() - make_interval(secs => $2)) as others_beat
		from job_run n join collector_config c on c.name = n.collector and c.epoch = n.epoch
		where n.id = $1`, id, fresh.Seconds())
	if errors.Is(err, ErrNotFound) {
		return Sighting{Run: run}, nil
	}
	if err != nil {
		return Sighting{}, wrap("looking at the collector of run "+string(id), err)
	}
	return Sighting{Run: run, Registered: true, Current: of.Current, Silence: time.Duration(of.Silence * float64(time.Second)), OthersBeat: of.OthersBeat}, nil
}
