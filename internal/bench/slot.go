package bench

import (
	"fmt"
	"regexp"
)

var slotPattern = regexp.MustCompile(`^(.+)-c[1-9][0-9]*-[1-9][0-9]*$`)

// SlotName names the n-th slot, from 1, of a size class of a shared host: a
// collector's name, which has to be checked as such.
func SlotName(host string, class SizeClass, n int) string {
	return fmt.Sprintf("%s-c%d-%d", host, class, n)
}

// HostOfSlot is the shared host that the name of a slot says; empty for another
// collector's name.
func HostOfSlot(name string) string {
	if parts := slotPattern.FindStringSubmatch(name); parts != nil {
		return parts[1]
	}
	return ""
}
