package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/waittime"
)

// blockedWords say what kept jobs from running.
var blockedWords = map[waittime.Reason]string{
	waittime.Turn: "not in their turn", waittime.Input: "waiting for another job", waittime.Pause: "project paused", waittime.Limit: "limit of the account", waittime.Collector: "no live collector",
}

// BlockedWords says what keeps a job from running.
func BlockedWords(reason waittime.Reason) string { return blockedWords[reason] }

// Waits writes how long jobs wait, by pool and queue, and how long requests took.
func Waits(w io.Writer, s apiclient.WaitStats, v View) error {
	if len(s.Places) == 0 {
		if err := write(w, "No job became able to run within the last "+span(s)+", and none waits.\n"); err != nil {
			return err
		}
		return endToEnd(w, s, v)
	}
	right := func(heading string) Column { return Column{Heading: heading, Right: true} }
	t := NewTable(Column{Heading: "pool"}, Column{Heading: "queue"}, right("objective"), right("in time"), right("started"), right("waiting"), right("late"),
		right("p50"), right("p90"), right("max"), Column{Heading: "not able to run", Flex: true})
	row := func(pool, queue string, l apiclient.WaitLevel) {
		objective := ""
		if l.Objective > 0 {
			objective = Duration(seconds(l.Objective))
		}
		t.Row(pool, queue, objective, Percent(l.Share), strconv.Itoa(l.Started), strconv.Itoa(l.Waiting), nonzero(l.Overdue),
			optional(l.Median), optional(l.Ninth), optional(l.Longest), blockedText(l.Blocked))
	}
	for _, place := range s.Places {
		row(place.Pool, place.Queue, place)
	}
	if len(s.Places) > 1 {
		row("all", "", s.Total)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	if err := write(w, "\n"+WaitSteps(s)+"\n"); err != nil {
		return err
	}
	return endToEnd(w, s, v)
}

// WaitsByBlock writes the same as [Waits], and the figures by block of time.
func WaitsByBlock(w io.Writer, s apiclient.WaitStats, v View) error {
	if err := Waits(w, s, v); err != nil || len(s.Total.Blocks) == 0 {
		return err
	}
	right := func(heading string) Column { return Column{Heading: heading, Right: true} }
	t := NewTable(Column{Heading: "able to run from"}, right("in time"), right("started"), right("waiting"), right("late"), right("p50"), right("p90"), right("max"))
	for _, b := range s.Total.Blocks {
		t.Row(b.From.In(v.Now.Location()).Format("2006-01-02 15:04"), Percent(b.Share), strconv.Itoa(b.Started), strconv.Itoa(b.Waiting), nonzero(b.Overdue),
			optional(b.Median), optional(b.Ninth), optional(b.Longest))
	}
	if err := write(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, v.Width)
}

// span formats the period.
func span(s apiclient.WaitStats) string {
	return strings.TrimSuffix(strings.TrimSuffix(Duration(s.Until.Sub(s.From).Round(time.Second)), "00m"), "0h")
}

// nonzero formats a number; empty for 0.
func nonzero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// blockedText says for how long jobs could not run, and how many cannot now.
func blockedText(blocked []apiclient.BlockedTime) string {
	var parts []string
	for _, b := range blocked {
		part := BlockedWords(b.Reason) + " " + Duration(seconds(b.Seconds))
		if b.Now > 0 {
			part += fmt.Sprintf(" (%d now)", b.Now)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// WaitSteps says how many jobs waited for how long.
func WaitSteps(s apiclient.WaitStats) string {
	var parts []string
	for i, jobs := range s.Total.Steps {
		if jobs == 0 {
			continue
		}
		from, to := seconds(float64(i)*s.StepSeconds), seconds(float64(i+1)*s.StepSeconds)
		when := fmt.Sprintf("%.0f to %.0f min", from.Minutes(), to.Minutes())
		if i == len(s.Total.Steps)-1 {
			when = fmt.Sprintf("%.0f min or more", from.Minutes())
		}
		parts = append(parts, fmt.Sprintf("%s %s", Plural(jobs, "job"), when))
	}
	if len(parts) == 0 {
		return "No job has started or is late."
	}
	return "waited: " + strings.Join(parts, ", ")
}

// endToEnd writes how long requests took.
func endToEnd(w io.Writer, s apiclient.WaitStats, v View) error {
	if len(s.EndToEnd) == 0 {
		return nil
	}
	right := func(heading string) Column { return Column{Heading: heading, Right: true} }
	t := NewTable(Column{Heading: "from cause to result"}, Column{Heading: "type"}, right("requests"), right("p50"), right("p90"), right("max"), right("until its turn, p50"))
	for _, e := range s.EndToEnd {
		t.Row(e.Project, string(e.Type), strconv.Itoa(e.Requests), Duration(seconds(e.Median)), Duration(seconds(e.Ninth)), Duration(seconds(e.Longest)), optional(e.Admission))
	}
	if err := write(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, v.Width)
}
