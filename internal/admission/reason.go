package admission

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

func reason(p Position, links *ancestry) string {
	r := p.Request
	switch p.Group {
	case GroupInProgress:
		return "in progress, before everything that has not started" + ringNote(p, links)
	case GroupReleases:
		return fmt.Sprintf("release of %s, before all commits%s", date(releaseDate(r)), ringNote(p, links))
	case GroupWaiting:
		return fmt.Sprintf("waits for its artifacts, behind all whose artifacts are ready; %s%s", number(r), ringNote(p, links))
	}
	var b strings.Builder
	b.WriteString("artifacts ready; ")
	switch {
	case p.InCycle && p.Level == 1:
		b.WriteString("is its own parent, a cycle that nothing can finish")
	case p.InCycle:
		fmt.Fprintf(&b, "part of a cycle of %d requests that are each other's ancestors", p.Level)
	case p.Level == 0:
		b.WriteString("no unfinished ancestor" + ringNote(p, links))
	default:
		fmt.Fprintf(&b, "behind %s, the nearest is %s%s%s",
			plural(p.Level, "unfinished ancestor"), r.ParentTag, parentNote(r, links), ringNote(p, links))
	}
	fmt.Fprintf(&b, "; %s, %s", typeName(r.Type), number(r))
	return b.String()
}

// ringNote notes that the request is part of a cycle of links, for a request whose position does not follow from it.
func ringNote(p Position, links *ancestry) string {
	on, member := links.ring(p.Request)
	switch {
	case !member:
		return ""
	case on.broken == "":
		return fmt.Sprintf("; its parent links form a cycle of %s", plural(on.members, "request"))
	default:
		return fmt.Sprintf("; its parent links form a cycle of %s, which holds nobody up since %s is finished or in progress",
			plural(on.members, "request"), on.broken)
	}
}

func parentNote(r Request, links *ancestry) string {
	switch {
	case links.parentOnCycle(r):
		return ", which is part of a cycle"
	case !links.requested(r.ParentTag):
		return ", which is not requested"
	default:
		return ""
	}
}

func blocked(p Position, links *ancestry) string {
	r := p.Request
	switch {
	case p.Group == GroupInProgress:
		return "already in progress"
	case p.Group == GroupWaiting:
		return "waiting for artifacts"
	case r.ParentTag == "" || links.finished[r.ParentTag]:
		return ""
	case p.InCycle:
		return fmt.Sprintf("parent %s is also a descendant: the parent links form a cycle; remove one of them", r.ParentTag)
	case links.running[r.ParentTag]:
		return fmt.Sprintf("parent %s is in progress, not finished", r.ParentTag)
	case links.requested(r.ParentTag):
		return fmt.Sprintf("parent %s is not finished", r.ParentTag)
	default:
		return fmt.Sprintf("parent %s is neither finished nor requested; request it or drop the link", r.ParentTag)
	}
}

func typeName(t bench.RequestType) string {
	if t == "" {
		return "no type"
	}
	return string(t)
}

func number(r Request) string {
	if r.PR == 0 {
		return "no pull request"
	}
	return fmt.Sprintf("pull request %d", r.PR)
}

// date returns the day, with the time unless it is midnight.
func date(t time.Time) string {
	t = t.UTC()
	switch {
	case t.IsZero():
		return "unknown date"
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	default:
		return t.Format(time.RFC3339Nano)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
