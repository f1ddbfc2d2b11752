package workers

import (
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
)

// idleReport tells what disturbs the machine of a collector that was set aside,
// from one heartbeat to the next.
type idleReport struct {
	readings jobrun.Readings
	// asked is set while the API wants to know.
	asked bool
	last  *machine.Reading
}

// next returns what has disturbed the machine since the last call; nil if nobody
// asked, or the collector was not idle all the time.
func (r *idleReport) next(idle bool) *string {
	if !r.asked || !idle || r.readings == nil {
		r.last = nil
		return nil
	}
	now := r.readings.Read()
	last := r.last
	r.last = &now
	if last == nil {
		return nil
	}
	text := machine.Text(machine.Judge(machine.Between(*last, now, 0), machine.Norms{}))
	return &text
}
