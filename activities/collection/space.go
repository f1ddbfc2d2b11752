package collection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/jobrun"
)

// Pauses between two attempts while the disk is full.
const (
	firstSpacePause   = 200 * time.Millisecond
	longestSpacePause = 10 * time.Second
)

// onFullDisk calls do again while it fails because of a full disk, for at most
// DiskPatience: somebody may be about to free space. Each attempt that made progress
// restarts that time.
func (c *Collector) onFullDisk(ctx context.Context, out io.Writer, do func() (progress bool, err error)) error {
	var since time.Time
	pause := firstSpacePause
	for {
		progress, err := do()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) || ctx.Err() != nil {
			return err
		}
		now := c.Machine.Now()
		if since.IsZero() || progress {
			since, pause = now, firstSpacePause
			c.Log.WarnContext(ctx, "the disk is full: waiting for space", "patience", c.DiskPatience, "error", err)
			fmt.Fprintln(out, "== the disk is full; waiting for space:", err)
		}
		if now.Add(pause).Sub(since) > c.DiskPatience {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		pause = min(2*pause, longestSpacePause)
	}
}

// job runs a job. If the disk is full, it waits and goes on with the test cases that
// were not delivered yet.
func (c *Collector) job(ctx context.Context, m jobrun.Machine, job jobrun.Job, s *sink, out io.Writer) error {
	all := job.TestCases
	return c.onFullDisk(ctx, out, func() (bool, error) {
		before := s.blocks
		s.base = s.blocks // blocks are numbered from 1 in each attempt
		job.TestCases = s.lacking(all)
		if s.cleaned != nil {
			s.cleaned()
		}
		s.clock.start()
		err := jobrun.Run(ctx, m, job, s)
		s.clock.stop()
		return s.blocks > before, err
	})
}
