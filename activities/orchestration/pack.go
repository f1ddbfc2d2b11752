package orchestration

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

const (
	// packSoonBound bounds the packing at the end of a request's jobs, within the 30 s of
	// its activity. An artifact of 5,600 series takes a second or two.
	packSoonBound = 15 * time.Second
	// packPass is the time after which a reconciliation begins to pack no more artifacts: it
	// has other things to do, and the next pass continues.
	packPass = 5 * time.Second
)

// packSoon packs the results of a request whose jobs have ended: pages read them from now
// on. If it fails, the reconciliation does it, and until then pages read the rows.
func (a *Activities) packSoon(ctx context.Context, r bench.Request) {
	if r.Tag == "" {
		return // a command
	}
	bounded, stop := context.WithTimeout(ctx, packSoonBound)
	defer stop()
	for {
		n, err := a.Store.PackResults(bounded, r.Project)
		if err != nil {
			a.Log.WarnContext(ctx, "packing results is left to the reconciliation", "project", r.Project, "request", r.ID, "error", err)
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// pack packs results that have changed since they were packed, or never were.
func (p *pass) pack(ctx context.Context) error {
	projects, err := p.Store.ProjectsToPack(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, project := range projects {
		for n := 1; n > 0; {
			if time.Since(began) > packPass {
				return nil
			}
			if n, err = p.Store.PackResults(ctx, project); err != nil {
				return err
			}
			p.scope().Counter("artifacts_packed_total").Inc(int64(n))
		}
	}
	return nil
}
