package bench

import (
	"fmt"
	"strings"
)

// Segment holds the settings of a machine on which results depend besides its hardware:
// values separated by "|", in the order of [segmentParts]. A change of the settings
// begins another series: results of two segments compare only if measured in turns.
//
// An empty or missing part is not known, and differs from nothing.
type Segment string

// segmentParts names the parts of a segment; the migration that fills them has the same
// order.
func segmentParts() []string {
	return []string{"kernel", "governor", "microcode", "boot options", "turbo", "SMT", "isolation"}
}

// Differs reports whether a part that both know differs.
func (s Segment) Differs(other Segment) bool { return s.Change(other) != "" }

// Change names what differs from s to other, for "measured under …": "another kernel:
// 6.1 and 6.8"; several are separated by semicolons. It is empty if nothing does.
func (s Segment) Change(other Segment) string {
	mine, theirs := strings.Split(string(s), "|"), strings.Split(string(other), "|")
	var changes []string
	for i, name := range segmentParts() {
		if i >= len(mine) || i >= len(theirs) || mine[i] == "" || theirs[i] == "" || mine[i] == theirs[i] {
			continue
		}
		article := "another "
		if strings.HasSuffix(name, "s") {
			article = "other "
		}
		changes = append(changes, fmt.Sprintf("%s%s: %s and %s", article, name, mine[i], theirs[i]))
	}
	return strings.Join(changes, "; ")
}
