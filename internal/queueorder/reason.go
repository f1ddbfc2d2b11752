package queueorder

import (
	"fmt"
	"strings"
	"time"
)

func reason(p Position, links *ancestry) string {
	r := p.Request
	switch p.Group {
	case GroupInProgress:
		return "in progress, before everything that has not started"
	case GroupReleases:
		return fmt.Sprintf("release of %s, before all commits", day(releaseDate(r)))
	case GroupWaiting:
		return fmt.Sprintf("waits for its artifacts, behind all whose artifacts are ready; %s", number(r))
	}
	var b strings.Builder
	b.WriteString("artifacts ready; ")
	switch {
	case p.InCycle && p.Level == 1:
		b.WriteString("is its own parent, a cycle that nothing can finish")
	case p.InCycle:
		fmt.Fprintf(&b, "part of a cycle of %d requests that are each other's ancestors", p.Level)
	case p.Level == 0:
		b.WriteString("no unfinished ancestor")
	default:
		fmt.Fprintf(&b, "behind %s, the nearest is %s%s",
			plural(p.Level, "unfinished ancestor"), r.ParentTag, parentNote(r, links))
	}
	fmt.Fprintf(&b, "; %s, %s", typeName(r.Type), number(r))
	return b.String()
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

func typeName(t Type) string {
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

func day(t time.Time) string {
	if t.IsZero() {
		return "unknown date"
	}
	return t.Format(time.DateOnly)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
