package graphset

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// Due lists what the service has to do for a set by now.
type Due struct {
	// Ready are nodes that the service carries out itself and whose inputs are met, except
	// sign-offs, which wait for a person.
	Ready []Node
	// Skipped are nodes that the rule of states skips and that have not been recorded as
	// skipped.
	Skipped []Skip
	// Until is the earliest time at which another node is skipped unless something happens;
	// zero: there is none.
	Until time.Time
}

// Skip is a node that is skipped.
type Skip struct {
	Node   Node
	Reason graph.Reason
	// Words is the reason, with names of nodes instead of keys.
	Words string
}

// Due returns what the service has to do by now. Only sets that are made from a template ask
// for anything.
func (s Set) Due(now time.Time) Due {
	var out Due
	if !s.FromTemplate() {
		return out
	}
	states, titles := s.States(now), make(map[bench.JobKey]string, len(s.Nodes))
	for _, n := range s.Nodes {
		titles[n.Job] = n.Title()
	}
	for _, n := range s.Nodes {
		if n.Input || n.Replaced {
			continue
		}
		state := states[n.Job]
		switch {
		case state.Status == graph.Skipped && n.Skipped == nil && n.Status == bench.JobQueued:
			named := state.Reason
			named.Node = titles[bench.JobKey(named.Node)]
			out.Skipped = append(out.Skipped, Skip{n, state.Reason, named.String()})
		case state.Status == graph.Ready && n.Service.Kind() != "" && n.NodeKind() != graph.KindSignOff:
			out.Ready = append(out.Ready, n)
		}
		if !state.Until.IsZero() && (out.Until.IsZero() || state.Until.Before(out.Until)) {
			out.Until = state.Until
		}
	}
	return out
}

// Missing is an input that a job lacks.
type Missing struct {
	Job bench.JobKey
	// Name names a template's node; empty: a stage made it.
	Name string
	// Service reports that no machine runs it.
	Service bool
	// Status is a [bench.JobStatus], waiting or skipped.
	Status string
}

// Ended reports whether the input has ended otherwise than the job needs.
func (m Missing) Ended() bool { return m.Status != "waiting" && !bench.JobStatus(m.Status).Open() }
