package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Shares writes the shares due and received of queues, users, hosts or pools.
func Shares(w io.Writer, s apiclient.Shares, v View) error {
	if len(s.Shares) == 0 {
		return write(w, "No job is waiting or running, and no run began within the last "+Duration(seconds(s.WindowSeconds))+".\n")
	}
	right := func(heading string) Column { return Column{Heading: heading, Right: true} }
	t := NewTable(Column{Heading: s.By}, Column{Heading: "class"}, right("weight"), right("level"), right("share"), right("received"), right("started"),
		right("queued"), right("handed out"), right("running"), right("wait p50"), right("p90"), right("max"), right("oldest"))
	for _, one := range s.Shares {
		weight, level := "", ""
		if one.Class != "" {
			level = strconv.Itoa(one.Level)
		}
		if one.Class == "weighted" {
			weight = strconv.FormatFloat(one.Weight, 'g', -1, 64)
		}
		oldest := ""
		if one.OldestSince != nil {
			oldest = Duration(v.Now.Sub(*one.OldestSince))
		}
		t.Row(cmp.Or(one.Name, "(unknown)"), one.Class, weight, level, Percent(one.Share), Percent(one.Received), strconv.Itoa(one.Started), strconv.Itoa(one.Queued),
			strconv.Itoa(one.HandedOut), strconv.Itoa(one.Running), optional(one.WaitMedian), optional(one.Wait90), optional(one.WaitMax), oldest)
	}
	if err := t.Write(w, v.Width); err != nil || !slices.ContainsFunc(s.Shares, func(one apiclient.Share) bool { return one.Share != nil }) {
		return err
	}
	return write(w, "\nshare: part of the weights of all weighted queues with work. At a task queue, a queue shares only with\nthose that have work there; 'benchloom explain JOB' lists them.\n")
}

// Percent formats a fraction as a percentage; empty for nil.
func Percent(part *float64) string {
	if part == nil {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100**part)
}

// optional formats a duration in seconds; empty for nil.
func optional(s *float64) string {
	if s == nil {
		return ""
	}
	return Duration(seconds(*s))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
