package workers

import (
	"context"
	"log/slog"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// cleanEvery is the interval at which an idle collector looks for unused caches.
const cleanEvery = time.Hour

// keepClean first removes caches that exceed their limit and then, until the context ends,
// those that no job has used for long. While a job runs it does nothing: removing would
// disturb the measurement.
func (c Collector) keepClean(ctx context.Context, log *slog.Logger) {
	removed, err := c.Jobs.BoundCaches(ctx)
	if len(removed) > 0 {
		log.WarnContext(ctx, "removed caches: together they held more than they may", "directories", removed)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "caches stay larger than they may be", "error", err)
	}
	if c.KeepCaches == bench.Forever {
		return
	}
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		removed, err := c.Jobs.RemoveUnused(ctx, time.Now().Add(-c.KeepCaches))
		if len(removed) > 0 {
			log.InfoContext(ctx, "removed unused caches", "directories", removed)
		}
		if err != nil {
			log.WarnContext(ctx, "unused caches stay", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
