package measure

import (
	"slices"
	"time"
)

// What the tests of pure parts need to see.

var ParseStat = parseStat

// DecodePerf exposes decodePerf.
func DecodePerf(record [24]byte) (value uint64, enabled, running time.Duration) {
	r := decodePerf(record)
	return r.value, r.enabled, r.running
}

// IsDead exposes process.dead.
func (p process) IsDead() bool { return p.dead() }

// Identity exposes the fields parsed from a line of /proc/<pid>/stat.
func (p process) Identity() (pid, parent, session int, start uint64) {
	return p.pid, p.parent, p.session, p.start
}

// ExplainHardware and ExplainMigrations expose the messages for a counter that cannot be opened.
func ExplainHardware(err error, root string) error {
	return explainPerf(err, perfEvents[CounterInstructions], root)
}

func ExplainMigrations(err error, root string) error {
	return explainPerf(err, perfEvents[CounterMigrations], root)
}

// Hierarchies lists the hierarchies found by findHierarchies: controllers (none for version 2), mount and own group, or why
// there is none.
func Hierarchies(root string) ([][]string, error) {
	found, err := findHierarchies(root)
	var lines [][]string
	for _, h := range found {
		line := append([]string{h.mount, h.own}, h.controllers...)
		if h.outside != "" {
			line = []string{h.mount, "outside: " + h.outside}
		}
		lines = append(lines, line)
	}
	return lines, err
}

// Waning exposes waning.
type Waning = waning

// Over exposes waning.over.
func (w *waning) Over(left int, now time.Time) bool { return w.over(left, now) }

// AheadPID returns the process ID of the init process of the next space, 0 if there is none.
func (s *Sandbox) AheadPID() int {
	s.rest.mu.Lock()
	defer s.rest.mu.Unlock()
	if s.launcher.ahead == nil {
		return 0
	}
	return s.launcher.ahead.pid
}

// InitPID returns the process ID of a sandbox's init process.
func (s *Sandbox) InitPID() int { return s.launcher.space.pid }

// LockSpace gives the space a namespace that nothing can enter or leave.
func (s *Sandbox) LockSpace() {
	s.launcher.space.usable = append(slices.Clone(s.launcher.space.usable), namespace{name: "none"})
}
