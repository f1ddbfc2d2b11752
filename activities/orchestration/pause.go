package orchestration

import "context"

// pause describes a project's paused admission to waiting requests; the zero value means
// that it is not paused.
type pause struct{ admission string }

func (a *Activities) paused(ctx context.Context, project string) (pause, error) {
	p, err := a.Store.QueuePause(ctx, project)
	if err != nil || p == nil {
		return pause{}, err
	}
	return pause{admission: p.String()}, nil
}

// running describes the wait of a request in progress.
func (p pause) running() string {
	if p.admission == "" {
		return ""
	}
	return p.admission + "; jobs that were handed out before go on"
}

// waiting precedes the position of a request that waits for admission.
func (p pause) waiting() string {
	if p.admission == "" {
		return ""
	}
	return p.admission + "; "
}
