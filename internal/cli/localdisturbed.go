package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/jobrun"
	readings "github.com/benchloom/benchloom/internal/machine"
)

// disturbed returns a heading with the number of disturbed iterations, and a line for each cause, the most frequent one
// first; nothing if there are none.
func disturbed(list []jobrun.LocalResult) (heading string, causes []string) {
	type cause struct {
		name    readings.Cause
		n       int
		example string
	}
	var found []cause
	marked, all := 0, 0
	for _, r := range list {
		for _, c := range r.Collections {
			all++
			if len(c.Disturbed) > 0 {
				marked++
			}
			for _, reason := range c.Disturbed {
				i := slices.IndexFunc(found, func(c cause) bool { return c.name == reason.Cause })
				if i < 0 {
					i = len(found)
					found = append(found, cause{name: reason.Cause, example: reason.Detail})
				}
				found[i].n++
			}
		}
	}
	if marked == 0 {
		return "", nil
	}
	slices.SortStableFunc(found, func(a, b cause) int { return cmp.Compare(b.n, a.n) })
	for _, c := range found {
		causes = append(causes, fmt.Sprintf("%s in %d, such as %s", c.name, c.n, Printable(c.example)))
	}
	return fmt.Sprintf("Disturbed by something else (%d of %s)", marked, Plural(all, "iteration")), causes
}
