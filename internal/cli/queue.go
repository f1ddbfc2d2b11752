package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// Order writes the order of requests.
func Order(w io.Writer, o admission.Listing, v View) error {
	if len(o.Order) == 0 {
		return write(w, "No request is pending.\n")
	}
	t := NewTable(Column{Heading: "position", Right: true}, Column{Heading: "request"}, Column{Heading: "tag"}, Column{Heading: "level", Right: true},
		Column{Heading: "may start"}, Column{Heading: "reason", Flex: true})
	for _, e := range o.Order {
		t.Row(strconv.Itoa(e.Position), string(e.ID), e.Tag, strconv.Itoa(e.Level), yes(e.Admissible), e.Reason)
	}
	return t.Write(w, v.Width)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Queue writes a project's order of requests.
func Queue(w io.Writer, q apiclient.Queue, v View) error {
	if q.Paused != "" {
		if err := write(w, Printable(q.Paused)+"\n"); err != nil {
			return err
		}
	}
	if len(q.Requests) == 0 {
		return write(w, "No request of "+q.Project+" is open.\n")
	}
	t := NewTable(Column{Heading: "position", Right: true}, Column{Heading: "request"}, Column{Heading: "tag"}, Column{Heading: "type"},
		Column{Heading: "PR", Right: true}, Column{Heading: "status"}, Column{Heading: "starts"}, Column{Heading: "ends"},
		Column{Heading: "waits for"}, Column{Heading: "reason", Flex: true})
	for _, e := range q.Requests {
		number := ""
		if e.PR > 0 {
			number = strconv.Itoa(e.PR)
		}
		t.Row(strconv.Itoa(e.Position), string(e.ID), e.Tag, string(e.Type), number, words(e.Status), away(v.Now, e.EstimatedStart), away(v.Now, e.EstimatedEnd),
			e.Blocked, e.Reason)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, fmt.Sprintf("\npolicy %s, %s at a time\n", q.Policy, Plural(q.MaxInProgress, "request")))
}

// away describes a past or future time relative to now; empty if unknown.
func away(now time.Time, at *time.Time) string {
	switch {
	case at == nil:
		return ""
	case at.Sub(now).Abs() < time.Second: // what the API rounds to
		return "now"
	case !at.After(now):
		return Ago(now, *at)
	}
	return "in " + Duration(at.Sub(now))
}

// foreseen describes the estimated start, unless past, and end of a request; empty if unknown.
func foreseen(now time.Time, d apiclient.RequestDetail) string {
	var parts []string
	if d.AdmittedAt == nil && d.EstimatedStart != nil {
		parts = append(parts, "starts "+clock(now, *d.EstimatedStart))
	}
	if d.EstimatedEnd != nil {
		parts = append(parts, "ends "+clock(now, *d.EstimatedEnd))
	}
	return strings.Join(parts, ", ")
}

// clock formats a time of day and its distance from now, with the date unless it is
// today's.
func clock(now, at time.Time) string {
	at = at.In(now.Location())
	layout := "15:04"
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = "2006-01-02 15:04"
	}
	return at.Format(layout) + " (" + away(now, &at) + ")"
}

// Admissions writes a project's latest admissions.
func Admissions(w io.Writer, l apiclient.AdmissionList, v View) error {
	if len(l.Admissions) == 0 {
		return write(w, "No admissions are recorded.\n")
	}
	t := NewTable(Column{Heading: "admitted"}, Column{Heading: "request"}, Column{Heading: "policy"})
	for _, a := range l.Admissions {
		t.Row(Ago(v.Now, a.At), string(a.Request), a.Policy)
	}
	return t.Write(w, v.Width)
}
