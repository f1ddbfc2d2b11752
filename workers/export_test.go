package workers

import "go.temporal.io/sdk/client"

// Lanes are the task queues that a slot polls.
type Lanes = lanes

// OpenLanes polls task queues, and fails the test's way.
func OpenLanes(slot string, gate *Gate, temporal client.Client, jobs jobs, failed func(error)) *Lanes {
	return openLanes(slot, gate, temporal, jobs, failed)
}

// Report says for how many seconds the oldest job of each queue of a slot waits.
func (g *Gate) Report(slot string, seconds map[string]float64) { g.report(slot, seconds) }

func (l *lanes) Serve(queues ...string) { l.serve(queues) }
func (l *lanes) Close()                 { l.close() }
