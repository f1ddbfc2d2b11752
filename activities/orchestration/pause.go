package orchestration

import "context"

// pause is what a paused queue tells those who wait for it; the zero value: it is
// not paused.
type pause struct{ queue string }

func (a *Activities) paused(ctx context.Context, project string) (pause, error) {
	p, err := a.Store.QueuePause(ctx, project)
	if err != nil || p == nil {
		return pause{}, err
	}
	return pause{queue: p.String()}, nil
}

// running is what a request in progress waits for.
func (p pause) running() string {
	if p.queue == "" {
		return ""
	}
	return p.queue + "; jobs that were handed out before go on"
}

// waiting comes before the place of a request that waits for its turn.
func (p pause) waiting() string {
	if p.queue == "" {
		return ""
	}
	return p.queue + "; "
}
