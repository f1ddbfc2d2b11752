package workflows

import (
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Current details for the Temporal Web UI, in Markdown. They change with the state,
// never by the clock.

// page builds text. It formats with Sprintf only: the determinism checker cannot
// follow writes through interfaces.
type page struct{ text strings.Builder }

func (p *page) add(text string) { p.text.WriteString(text) }

func (p *page) addf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.add(text)
}

func (p *page) String() string { return p.text.String() }

func requestDetails(namespace string, s protocol.RequestStatus, f protocol.RequestFacts, result protocol.RequestResult) string {
	var b page
	what := f.Tag
	if what == "" {
		what = "a command"
	}
	b.addf("**%s** of `%s`: %s, asked for by %s\n\n", f.Type, s.Project, what, f.User)
	b.addf("| state | %s |\n|---|---|\n| waits | %s |\n", s.Phase, s.Waits)
	if s.Progress.Total > 0 {
		b.addf("| jobs | %s |\n", jobsText(s.Progress))
	}
	if result.Outcome != "" {
		b.addf("| outcome | %s |\n", result.Outcome)
	}
	if result.Baseline != "" {
		b.addf("| compared with | %s |\n", result.Baseline)
	}
	if result.Message != "" {
		b.addf("\n%s\n", result.Message)
	}
	b.add(sharedText(namespace, s.Shared))
	b.addf("\n`benchloom status %s`\n", s.ID)
	return b.String()
}

// sharedText links jobs that another request has started, which are not among the
// request's children.
func sharedText(namespace string, shared protocol.SharedJobs) string {
	if shared.Total == 0 {
		return ""
	}
	var b page
	b.addf("\nShared jobs, started by other requests: %d\n\n", shared.Total)
	for _, id := range shared.Workflows {
		b.addf("* [%s](/namespaces/%s/workflows/%s)\n", id, namespace, strings.ReplaceAll(id, "/", "%2F"))
	}
	if more := shared.Total - len(shared.Workflows); more > 0 {
		b.addf("* and %d more\n", more)
	}
	return b.String()
}

func jobsText(c protocol.JobCounts) string {
	text := fmt.Sprintf("%d of %d jobs open", c.Open, c.Total)
	for _, part := range []struct {
		n    int
		name string
	}{{c.Success, "succeeded"}, {c.Failure, "failed"}, {c.Cancelled, "cancelled"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.name)
		}
	}
	return text
}

func jobDetails(in protocol.JobInput, s protocol.JobStatus) string {
	var b page
	b.addf("**%s**\n\n", in.Summary)
	b.addf("| state | %s |\n|---|---|\n| waits | %s |\n| task queue | `%s` |\n| size class | %d |\n| handed out by | `%s` |\n| dispatches | %d |\n",
		s.Phase, s.Waits, s.TaskQueue, in.SizeClass, in.RequestWorkflow, s.Dispatches)
	if s.Collector != "" {
		b.addf("| collector | `%s` |\n| run | `%s` |\n", s.Collector, s.Run)
	}
	if s.LastError != "" {
		b.addf("\nLast error: %s\n", s.LastError)
	}
	b.addf("\n`benchloom logs %s`\n", in.Key)
	return b.String()
}

func queueDetails(s protocol.QueueStatus) string {
	var b page
	q := s.Queue
	b.addf("**%s**: %d of %d slots taken, %d waiting\n", s.Project, len(q.InProgress), q.Slots, q.Waiting)
	if q.Paused != "" {
		b.addf("\n%s\n\n`benchloom queue resume %s`\n", q.Paused, s.Project)
	}
	if len(q.InProgress) == 0 && q.Waiting == 0 {
		b.add("\nwaits for the next request\n")
		return b.String()
	}
	if q.Waiting > 0 && q.Paused == "" {
		b.add("\nwaits for a request in progress to end its jobs\n")
	}
	b.add("\n| request | artifact | |\n|---|---|---|\n")
	for _, e := range q.InProgress {
		b.addf("| `%s` | %s | in progress |\n", e.ID, e.Tag)
	}
	for _, e := range q.Next {
		b.addf("| `%s` | %s | %s |\n", e.ID, e.Tag, e.Reason)
	}
	return b.String()
}
