package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// Watch follows requests until all have ended.
type Watch struct {
	// Fetch reads the watched requests.
	Fetch func(context.Context) ([]apiclient.RequestDetail, error)
	// Transient reports whether an error of Fetch may pass; nil means that none does.
	Transient func(error) bool
	// Patience bounds the wait for transient errors to pass.
	Patience time.Duration
	// Every is the shortest pause between reads.
	Every time.Duration
	// Show is called after each read. away is the transient error if the read failed;
	// list is then the previous one.
	Show func(list []apiclient.RequestDetail, away error) error
	// Now and Pause replace the clock.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
}

const (
	// sparing is the length of a pause as a multiple of the read before it: the service needs its
	// time for jobs, too, when somebody watches thousands of them.
	sparing = 20
	// longestPause bounds a pause, unless Every is longer.
	longestPause = 10 * time.Second
)

// pause returns the pause after a read of that length; a failed read does not count.
func (w Watch) pause(read time.Duration, err error) time.Duration {
	if err != nil {
		return w.Every
	}
	return max(w.Every, min(sparing*read, longestPause))
}

// Run returns the requests once all have ended or, with an error, as they were last
// read. Before the first successful read, even transient errors end it: they more
// likely mean a wrong address.
func (w Watch) Run(ctx context.Context) ([]apiclient.RequestDetail, error) {
	var last []apiclient.RequestDetail
	var awaySince time.Time
	for {
		began := w.Now()
		list, err := w.Fetch(ctx)
		took := w.Now().Sub(began)
		switch {
		case ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err == nil:
			last, awaySince = list, time.Time{}
		case last == nil || w.Transient == nil || !w.Transient(err):
			return last, err
		case awaySince.IsZero():
			awaySince = w.Now()
		case w.Now().Sub(awaySince) > w.Patience:
			return last, fmt.Errorf("retried for %s: %w", Duration(w.Now().Sub(awaySince)), err)
		}
		if err := w.Show(last, err); err != nil {
			return last, err
		}
		if err == nil && !slices.ContainsFunc(last, func(d apiclient.RequestDetail) bool { return d.Status != bench.Completed }) {
			return last, nil
		}
		if err := w.Pause(ctx, w.pause(took, err)); err != nil {
			return last, err
		}
	}
}

// Size is the size of a terminal, in characters.
type Size struct{ Width, Height int }

const (
	barWidth = 20
	// fewestLines is the number of lines on the smallest terminal.
	fewestLines = 4
)

// LiveLines draws requests with their running jobs and present test cases, within
// size.
func LiveLines(list []apiclient.RequestDetail, now time.Time, size Size) []string {
	var lines []string
	for _, d := range list {
		lines = append(lines, liveRequest(d, now)...)
	}
	if bound := max(fewestLines, size.Height-1); size.Height > 0 && len(lines) > bound {
		hidden := len(lines) - bound + 1
		lines = append(lines[:bound-1], fmt.Sprintf("… %s not shown: the terminal is too small", Plural(hidden, "line")))
	}
	for i := range lines {
		lines[i] = cut(lines[i], size.Width)
	}
	return lines
}

func liveRequest(d apiclient.RequestDetail, now time.Time) []string {
	head := fmt.Sprintf("%s  %s  %s", d.ID, Printable(Subject(d.Request)), Standing(d.Request))
	if d.Status == bench.Completed {
		if d.EndedAt != nil {
			head += " after " + Duration(d.EndedAt.Sub(d.CreatedAt))
		}
		if d.Message != "" {
			head += ": " + Printable(d.Message)
		}
		return []string{head}
	}
	if d.Message != "" {
		head += ": " + Printable(d.Message)
	}
	lines := []string{head}
	if d.Progress.Jobs > 0 {
		lines = append(lines, "  "+Bar(d.Progress.TestCasesDone, d.Progress.TestCases, barWidth)+" "+Progress(d.Progress))
	}
	waiting := 0
	for _, j := range d.Jobs {
		switch j.Status {
		case bench.JobInProgress:
			lines = append(lines, liveJob(j, d.Runs, now)...)
		case bench.JobQueued, bench.JobHandedOut:
			waiting++
		}
	}
	if d.JobsTotal > len(d.Jobs) { // d.Jobs has only some of them
		waiting = d.Progress.Jobs - d.Progress.JobsDone - d.Progress.JobsRunning
	}
	if waiting > 0 {
		lines = append(lines, fmt.Sprintf("    %s waiting for a collector", Plural(waiting, "job")))
	}
	return lines
}

// liveJob draws a job's bar and, below it, the present test case.
func liveJob(j apiclient.Job, runs []apiclient.Run, now time.Time) []string {
	line := fmt.Sprintf("    %s %d/%d %s  %s", Bar(j.Done, j.Results(), barWidth), j.Done, j.Results(), j.Key, jobName(j))
	run, ok := currentRun(j.Key, runs)
	if !ok {
		return []string{line}
	}
	line += fmt.Sprintf(" on %s, %s", Printable(run.Collector), took(now, &run.StartedAt, nil))
	if run.Number > 1 {
		line += fmt.Sprintf(", run %d (%s)", run.Number, run.Reason)
	}
	lines := []string{line}
	if p := run.Progress; p.Phase != "" {
		text := p.Phase
		if p.Iterations > 0 {
			text = Bar(p.Iteration-1, p.Iterations, barWidth) + fmt.Sprintf(" %d/%d %s", p.Iteration, p.Iterations, p.Phase)
		}
		lines = append(lines, strings.TrimRight("      "+text+" "+Printable(p.TestCase), " "))
	}
	return lines
}

func jobName(j apiclient.Job) string {
	if j.Name != "" {
		return Printable(j.Name)
	}
	parts := []string{string(j.Kind)}
	for _, p := range []string{j.Backend, j.Profile, string(j.Target)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return Printable(strings.Join(parts, " "))
}

func currentRun(job bench.JobKey, runs []apiclient.Run) (apiclient.Run, bool) {
	for _, r := range slices.Backward(runs) {
		if r.Job == job && r.Outcome == bench.RunRunning {
			return r, true
		}
	}
	return apiclient.Run{}, false
}

// Changes describes the changes between two reads of requests, one per line, for
// output that is not a terminal. before is nil at the first read.
func Changes(before, after []apiclient.RequestDetail) []string {
	var lines []string
	for _, d := range after {
		i := slices.IndexFunc(before, func(b apiclient.RequestDetail) bool { return b.ID == d.ID })
		var old apiclient.RequestDetail
		if i >= 0 {
			old = before[i]
		}
		lines = append(lines, jobChanges(old, d)...)
		if now := requestLine(d); i < 0 || now != requestLine(old) {
			lines = append(lines, now)
		}
	}
	return lines
}

// requestLine describes a request, without the estimate, which always changes.
func requestLine(d apiclient.RequestDetail) string {
	line := fmt.Sprintf("%s %s: %s", d.ID, Printable(Subject(d.Request)), Standing(d.Request))
	p := d.Progress
	p.EstimateSeconds = nil
	if text := Progress(p); text != "" {
		line += ", " + text
	}
	if d.Message != "" {
		line += ": " + Printable(d.Message)
	}
	return line
}

func jobChanges(old, d apiclient.RequestDetail) []string {
	var lines []string
	many := d.JobsTotal > len(d.Jobs)
	for _, j := range d.Jobs {
		was := bench.JobStatus("")
		if i := slices.IndexFunc(old.Jobs, func(b apiclient.Job) bool { return b.Key == j.Key }); i >= 0 {
			was = old.Jobs[i].Status
		}
		// Of many jobs, only failures get a line; the counts cover the rest.
		begun := j.Status == bench.JobInProgress && !many
		// At the first read, jobs may have ended long ago.
		ended := !j.Status.Open() && old.ID != "" && (!many || j.Status == bench.JobFailure)
		if j.Status == was || !begun && !ended {
			continue
		}
		line := fmt.Sprintf("%s job %s (%s): %s", d.ID, j.Key, jobName(j), words(j.Status))
		if run, ok := currentRun(j.Key, d.Runs); ok {
			line += " on " + Printable(run.Collector)
		}
		if j.Message != "" {
			line += ": " + Printable(j.Message)
		}
		lines = append(lines, line)
	}
	return lines
}
