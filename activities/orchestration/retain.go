package orchestration

import (
	"context"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Retain removes what was kept long enough, kind by kind, in small transactions. A kind
// that fails does not keep the others from being removed.
func (a *Activities) Retain(ctx context.Context) (protocol.RetainResult, error) {
	stop := beat(ctx)
	defer stop()
	a.Points.Reach(ctx, failpoint.Removing)
	result := protocol.RetainResult{Removed: make(map[bench.RetentionKind]int64)}
	projects, err := a.projectRetention(ctx)
	if err != nil {
		return result, err
	}
	var errs []error
	for _, kind := range bench.RetentionKinds() {
		keep := store.Keep{Kind: kind, For: a.Keep[kind], Projects: projects[kind]}
		removed, err := a.removeExpired(ctx, keep)
		if removed.Rows > 0 {
			result.Removed[kind] = removed.Rows
			a.Log.InfoContext(ctx, "removed what was kept long enough", "kind", kind, "kept", bench.KeptText(keep.For), "rows", removed.Rows, "bytes", removed.Bytes)
		}
		result.Bytes += removed.Bytes
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// removeExpired removes the expired data of a kind, and records and counts it.
func (a *Activities) removeExpired(ctx context.Context, keep store.Keep) (removed store.Removed, err error) {
	for more := true; more && err == nil && ctx.Err() == nil; {
		var part store.Removed
		part, more, err = a.Store.RemoveExpired(ctx, keep)
		removed.Rows, removed.Bytes = removed.Rows+part.Rows, removed.Bytes+part.Bytes
	}
	// Even a cancelled pass has removed something.
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if recorded := a.Store.RecordRetention(recording, keep, removed); recorded != nil {
		return removed, errors.Join(err, recorded)
	}
	scope := a.scope().Tagged(map[string]string{"kind": string(keep.Kind)})
	scope.Counter("retention_removed_rows_total").Inc(removed.Rows)
	scope.Counter("retention_removed_bytes_total").Inc(removed.Bytes)
	oldest, found, oldestErr := a.Store.OldestKept(recording, keep.Kind)
	age := 0.0
	if found {
		age = a.Watching.Now().Sub(oldest).Seconds()
	}
	scope.Gauge("retention_oldest_seconds").Update(max(0, age))
	return removed, errors.Join(err, oldestErr, ctx.Err())
}

// projectRetention reads the retention that projects configure, by kind. A project whose
// configuration cannot be read keeps everything.
func (a *Activities) projectRetention(ctx context.Context) (map[bench.RetentionKind]map[string]time.Duration, error) {
	projects, err := a.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[bench.RetentionKind]map[string]time.Duration)
	set := func(kind bench.RetentionKind, project string, kept time.Duration) {
		if out[kind] == nil {
			out[kind] = make(map[string]time.Duration)
		}
		out[kind][project] = kept
	}
	for _, p := range projects {
		config, err := bench.ReadProjectConfig(p.Config)
		if err != nil {
			a.Log.WarnContext(ctx, "nothing of a project is removed: its configuration is invalid", "project", p.Name, "error", err)
			for _, kind := range bench.RetentionKinds() {
				if kind.OfProject() {
					set(kind, p.Name, bench.Forever)
				}
			}
			continue
		}
		for kind, kept := range config.Retention() {
			set(kind, p.Name, kept)
		}
	}
	return out, nil
}
