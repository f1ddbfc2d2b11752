package workers

import (
	"log/slog"

	"go.temporal.io/sdk/client"
)

// Lanes exposes lanes.
type Lanes = lanes

// OpenLanes opens lanes.
func OpenLanes(slot string, gate *Gate, temporal client.Client, jobs jobs, log *slog.Logger) *Lanes {
	return openLanes(slot, gate, temporal, jobs, log)
}

// Report reports the wait of the oldest job of each queue of a slot, in
// seconds.
func (g *Gate) Report(slot string, seconds map[string]float64) { g.report(slot, seconds) }

// KeepRoom keeps a slot from taking jobs while there is no room for them.
func (g *Gate) KeepRoom(slot string, room func() bool) { g.keepRoom(slot, room) }

func (l *lanes) Serve(queues ...string) { l.serve(queues) }
func (l *lanes) Close()                 { l.close() }

// NewHostLock returns a lock between processes.
var NewHostLock = newHostLock
