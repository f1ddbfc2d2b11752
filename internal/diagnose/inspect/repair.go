package inspect

import (
	"context"
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// Repairs limits the repairs, and names who asked for them.
type Repairs struct {
	// By is the caller's account.
	By string
	// DryRun only lists findings.
	DryRun bool
	// Force also resets workflows that cannot continue.
	Force bool
}

// Repaired is a finding with the result of its repair.
type Repaired struct {
	diagnose.Finding
	// Tried marks a repair that was carried out; Err is its failure, nil when it
	// succeeded.
	Tried bool
	Err   error
}

// Unstick finds out what holds a request and carries out the allowed repairs, each once.
// The error is a *TemporalError when Temporal does not answer; then nothing was repaired.
func (i *Inspector) Unstick(ctx context.Context, r bench.Request, may Repairs) ([]Repaired, error) {
	findings, err := i.Findings(ctx, r)
	if err != nil {
		return nil, err
	}
	out := make([]Repaired, len(findings))
	done := make(map[string]error) // by the repair and, of a reset, the workflow
	for n, f := range findings {
		out[n].Finding = f
		if f.Repair == "" || may.DryRun || f.Repair == diagnose.Reset && !may.Force {
			continue
		}
		key := string(f.Repair)
		if f.Repair == diagnose.Reset {
			key += f.Subject
		}
		failed, before := done[key]
		if !before {
			failed = i.repair(ctx, r, f, may.By)
			done[key] = failed
		}
		out[n].Tried, out[n].Err = true, failed
	}
	return out, nil
}

func (i *Inspector) repair(ctx context.Context, r bench.Request, f diagnose.Finding, by string) error {
	i.Log.InfoContext(ctx, "unstick", "project", r.Project, "request", r.ID, "subject", f.Subject, "found", f.What, "repair", f.Repair, "by", by)
	switch f.Repair {
	case diagnose.RestartRequest:
		return i.Workflows.RestartRequest(ctx, r.Ref())
	case diagnose.StartQueue:
		return i.Workflows.QueueChanged(ctx, r.Project)
	case diagnose.Reset:
		return i.Workflows.ResetToStart(ctx, f.Subject, "unstick, asked for by "+by)
	case diagnose.Reconcile:
		return i.Workflows.TriggerReconcile(ctx)
	}
	return fmt.Errorf("unknown repair %q", f.Repair)
}
