package orchestration

import (
	"context"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

const (
	// packSoonBound bounds the packing at the end of a request's jobs, within the 30 s of
	// its activity. An artifact of 5,600 series takes a second or two.
	packSoonBound = 15 * time.Second
	// packPass is the time after which no more artifacts are begun: there are other things
	// to do, and the next reconciliation continues.
	packPass = 5 * time.Second
)

// packSoon packs the results of a request whose jobs have ended: pages read them from now
// on. The reconciliation packs those that packSoon fails at or has no time for; until then
// pages read the rows.
func (a *Activities) packSoon(ctx context.Context, r bench.Request) {
	if r.Tag == "" {
		return // a command
	}
	bounded, stop := context.WithTimeout(ctx, packSoonBound)
	defer stop()
	// The request's own results come first. After an upgrade, say, thousands of artifacts are
	// due: the newest follow.
	began := time.Now()
	_, err := a.Store.PackArtifact(bounded, r.Project, r.Tag)
	_, err = a.packed(ctx, r.Project, err)
	for n := 1; n > 0 && err == nil && time.Since(began) < packPass; {
		n, err = a.Store.PackResults(bounded, r.Project)
		_, err = a.packed(ctx, r.Project, err)
	}
	if err != nil {
		a.Log.WarnContext(ctx, "packing results is left to the reconciliation", "project", r.Project, "request", r.ID, "error", err)
	}
}

// packed logs failures of packing and counts the failed artifacts. A returned error has
// ended the packing.
func (a *Activities) packed(ctx context.Context, project string, err error) (failed int, _ error) {
	met, ok := errors.AsType[*store.PackError](err)
	if !ok {
		return 0, err
	}
	a.Log.ErrorContext(ctx, "some results could not be packed, or not be read as they were packed; others go on", "project", project, "error", met)
	return len(met.Artifacts), nil
}

// pack packs results that have changed since they were packed, or never were. A project
// that cannot be packed does not prevent the others.
func (p *pass) pack(ctx context.Context) error {
	projects, err := p.Store.ProjectsToPack(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var errs []error
	for _, project := range projects {
		for n := 1; n > 0; {
			if time.Since(began) > packPass {
				return errors.Join(errs...)
			}
			n, err = p.Store.PackResults(ctx, project)
			failed, err := p.packed(ctx, project, err)
			if err != nil {
				errs = append(errs, err)
				break
			}
			p.scope().Counter("artifacts_packed_total").Inc(int64(n - failed))
			p.scope().Counter("artifacts_unpackable_total").Inc(int64(failed))
		}
	}
	return errors.Join(errs...)
}
