package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// call is a command with its name for messages.
type call struct {
	// what begins the log header and every message: "gin full 3/5".
	what    string
	command measure.Command
}

// execute runs a command. A failure is the command's; an error is the
// machine's or the context's.
func (r *runner) execute(ctx context.Context, c call) (measure.Sample, *Failure, error) {
	line := commandLine(c.command.Argv)
	fmt.Fprintf(r.log, "== %s: %s\n", c.what, line)
	var end tail
	var failing, repeating matcher
	c.command.Output = io.MultiWriter(&end, r.log)
	if r.script != nil {
		failing.patterns, repeating.patterns = r.script.failure, r.script.retry
		c.command.Output = io.MultiWriter(&end, r.log, &failing, &repeating)
	}
	c.command.FreshTemp, r.freshTemp = r.freshTemp, false
	sample, failure, err := r.guarded(ctx, c.command)
	if r.m.Sampled != nil {
		r.m.Sampled(sample)
	}
	if sample.OutputDropped > 0 {
		fmt.Fprintf(r.log, "\n== %s: %d of %d bytes of output were dropped, only its beginning is kept\n", c.what, sample.OutputDropped, sample.OutputBytes)
	}
	if ctx.Err() != nil {
		return sample, nil, context.Cause(ctx)
	}
	if failure != nil {
		failure.Message, failure.Output = fmt.Sprintf("%s: %s: %s", c.what, line, failure.Message), end.String()
		return sample, failure, nil
	}
	fail := func(kind bench.FailureKind, format string, args ...any) (measure.Sample, *Failure, error) {
		return sample, &Failure{Kind: kind, Message: fmt.Sprintf("%s: %s: ", c.what, line) + fmt.Sprintf(format, args...), Output: end.String()}, nil
	}
	if start, ok := errors.AsType[*measure.StartError](err); ok {
		return fail(bench.FailJob, "%v; install it on this machine, or correct the command", start)
	}
	if err != nil {
		return sample, nil, fmt.Errorf("%s: running %s: %w", c.what, line, err)
	}
	switch sample.Status {
	case measure.StatusTimedOut:
		return fail(bench.FailTimeout, "killed after its time limit of %s; it needs a larger machine or a longer timeout", c.command.Timeout.Round(time.Millisecond))
	case measure.StatusOutOfMemory:
		return fail(bench.FailOutOfMemory, "killed at the memory limit; it needs a larger machine")
	case measure.StatusDiskFull:
		return fail(bench.FailTooSmall, "killed at the disk limit; it needs a collector with more room")
	}
	succeeded, ruled := sample.Succeeded(), judged{}
	if r.script != nil {
		ruled = r.script.judge(sample, &failing, &repeating)
		succeeded = ruled.success
	}
	switch {
	case !succeeded:
	case r.job.Kind == bench.KindCommand && sample.LeftBehind > 0:
		return fail(bench.FailJob, "left %d processes running when it ended; they were killed, so that what it measures is incomplete: let it wait for all that it starts", sample.LeftBehind)
	case sample.OutputBytes > maxOutput:
		return fail(bench.FailJob, "printed %s, more than the allowed %s, which would be measured, too: write to a file, or print less", humanize.Bytes(uint64(sample.OutputBytes)), humanize.Bytes(maxOutput))
	default:
		return sample, nil, nil
	}
	if free, known := freeBytes(r.m.Sandbox.WorkDir()); known && free < leastFree {
		return sample, nil, fmt.Errorf("%s: %s: %w", c.what, line, syscall.ENOSPC) // it failed while the disk was full
	}
	if r.script != nil {
		sample, failure, err := fail(bench.FailJob, "%s", ruled.why)
		failure.again = ruled.again
		return sample, failure, err
	}
	if sample.Signal != "" {
		return fail(bench.FailJob, "ended by signal %s; see its output", sample.Signal)
	}
	return fail(bench.FailJob, "exit status %d; see its output", sample.ExitCode)
}

// maxOutput limits the bytes that a command may print: copying them takes time,
// some of it counted as the command's.
const maxOutput = 64e6

// leastFree is the free disk space, in bytes, below which a failure is
// attributed to the machine rather than to the command.
const leastFree = 4 << 20

// commandLine formats a command for people, shortened.
func commandLine(argv []string) string {
	const most = 200
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\$&|;<>()*?") {
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	line := strings.Join(words, " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// deadline is a time limit shared by several steps.
type deadline struct {
	now func() time.Time
	end time.Time
}

// until returns a deadline after limit; 0 means none.
func (r *runner) until(limit time.Duration) deadline {
	if limit <= 0 {
		return deadline{}
	}
	return deadline{now: r.m.Now, end: r.m.Now().Add(limit)}
}

// left returns the remaining time, at least a millisecond, so that an overdue
// command is killed immediately and reported as too slow. 0 means no limit.
func (d deadline) left() time.Duration {
	if d.now == nil {
		return 0
	}
	return max(d.end.Sub(d.now()), time.Millisecond)
}
