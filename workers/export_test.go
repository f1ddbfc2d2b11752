package workers

import "go.temporal.io/sdk/client"

// Lanes are the task queues that a slot polls.
type Lanes = lanes

// OpenLanes polls task queues, and fails the test's way.
func OpenLanes(slot string, gate *Gate, temporal client.Client, jobs jobs, failed func(error)) *Lanes {
	return openLanes(slot, gate, temporal, jobs, failed)
}

func (l *lanes) Serve(queues ...string) { l.serve(queues) }
func (l *lanes) Close()                 { l.close() }
