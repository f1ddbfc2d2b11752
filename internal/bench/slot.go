package bench

import (
	"fmt"
	"regexp"
)

var slotPattern = regexp.MustCompile(`^(.+)-c[1-9][0-9]*-[1-9][0-9]*$`)

// SlotName returns the collector name of the n-th slot, from 1, of a size class of a
// shared host. The caller must check it with [CheckName].
func SlotName(host string, class SizeClass, n int) string {
	return fmt.Sprintf("%s-c%d-%d", host, class, n)
}

// HostOfSlot returns the shared host in a slot's name; empty for any other collector's
// name.
func HostOfSlot(name string) string {
	if parts := slotPattern.FindStringSubmatch(name); parts != nil {
		return parts[1]
	}
	return ""
}
