// Command spacing tells how evenly the runs of a service were sampled, and whether the CPU time of the samples
// adds up to that of the runs:
//
//	BENCHLOOM_URL=http://127.0.0.1:7480 go run ./internal/e2e/spacing go
//
// It reads the runs of one project, or of all, prints its figures, and fails if a limit of docs/profiling.md is broken. It must know
// nothing of a service but its API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

const (
	// leastKept is the share of intervals of at most 150 ms.
	leastKept = 0.995
	// leastCPU is the CPU time of a run, in seconds, from which its samples must add up to it, but for mostOff of it.
	leastCPU = 1.0
	mostOff  = 0.05
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	project := ""
	if len(os.Args) > 1 {
		project = os.Args[1]
	}
	if err := run(ctx, os.Getenv("BENCHLOOM_URL"), os.Getenv("BENCHLOOM_TOKEN"), project, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "spacing:", err)
		os.Exit(1)
	}
}

// report adds up what was found.
type report struct {
	figures
	runs, left, compared, off int
	// most is the largest part by which samples missed the CPU time of a run.
	most float64
}

func run(ctx context.Context, url, token, project string, out io.Writer) error {
	api, err := apiclient.New(url, token, nil)
	if err != nil {
		return fmt.Errorf("%w; BENCHLOOM_URL is the address of the service", err)
	}
	var total report
	for cursor := ""; ; {
		list, err := api.Requests(ctx, apiclient.RequestQuery{Project: project, Limit: 100, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, r := range list.Requests {
			detail, err := api.Request(ctx, string(r.ID))
			if err != nil {
				return err
			}
			for _, one := range detail.Runs {
				if err := total.look(ctx, api, one.ID, out); err != nil {
					return err
				}
			}
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	return total.judge(out)
}

// look reads what was sampled of a run. Attempts that were cut off, or have lost values, tell nothing of their spacing.
func (r *report) look(ctx context.Context, api *apiclient.Client, run bench.RunID, out io.Writer) error {
	about, err := api.Profile(ctx, run)
	if err != nil {
		return err
	}
	if len(about.Attempts) == 0 {
		return nil
	}
	if !about.Over || len(about.Attempts) > 1 || about.Attempts[0].Partial || about.Attempts[0].DroppedTotal > 0 {
		r.left++
		return nil
	}
	var batches []profiler.Batch
	for from, more := 0, true; more; {
		page, err := api.ProfileMetrics(ctx, run, from)
		if err != nil {
			return err
		}
		batches, from, more = append(batches, page.Batches...), page.Next, page.More
	}
	f := measureSpacing(batches)
	r.runs++
	r.add(f)
	if f.late+f.bursts > 0 {
		fmt.Fprintf(out, "run %s: %d of %d intervals above 150 ms, %d above 250 ms (%d without a reason), %d below 50 ms; the longest %s\n",
			run, f.late, f.intervals, f.veryLate, f.unexplained, f.bursts, f.longest)
	}
	detail, err := api.Run(ctx, run)
	if err != nil {
		return err
	}
	// Beyond the time in which an agent is active, nothing is sampled.
	whole := detail.FinishedAt != nil && detail.FinishedAt.Sub(detail.StartedAt) < profiler.MaxActive
	sampled := sampledCPU(batches)
	if !whole || sampled == 0 || detail.CPUSeconds < leastCPU {
		return nil
	}
	r.compared++
	off := sampled/detail.CPUSeconds - 1
	r.most = max(r.most, max(off, -off))
	if max(off, -off) > mostOff {
		r.off++
		fmt.Fprintf(out, "run %s: %.3f s of CPU time, %.3f s in samples (%+.1f %%)\n", run, detail.CPUSeconds, sampled, 100*off)
	}
	return nil
}

// judge prints the figures and tells which limits are broken.
func (r *report) judge(out io.Writer) error {
	fmt.Fprintf(out, "%d runs, %d left out for a record that is not whole; %d intervals, %.3f %% of at most 150 ms, %d above 250 ms of which %d without a reason, %d below 50 ms; the longest %s\n",
		r.runs, r.left, r.intervals, 100*r.kept(), r.veryLate, r.unexplained, r.bursts, r.longest)
	fmt.Fprintf(out, "%d runs of %g s of CPU time or more: samples miss it by at most %.1f %%\n", r.compared, leastCPU, 100*r.most)
	var broken []error
	for _, limit := range []struct {
		is   bool
		text string
	}{
		{r.intervals == 0, "no run was sampled"},
		{r.kept() < leastKept, "fewer than 99.5 % of the intervals are at most 150 ms"},
		{r.unexplained > 0, "an interval above 250 ms has no reason"},
		{r.bursts > 0, "samples stand within 50 ms"},
		{r.off > 0, "samples miss the CPU time of a run by more than 5 %"},
	} {
		if limit.is {
			broken = append(broken, errors.New(limit.text))
		}
	}
	return errors.Join(broken...)
}
