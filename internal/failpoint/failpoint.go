// Package failpoint marks the places where failure tests stop or kill a process.
//
// It does nothing unless the environment variable BENCHLOOM_FAILPOINTS names a
// directory. Then reaching point p creates the file reached-p there, and waits
// for as long as a file hold-p exists: time to kill a process exactly there. It
// must only be used for failure tests.
package failpoint

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Env names the directory.
const Env = "BENCHLOOM_FAILPOINTS"

// The points of a job's life, in order.
const (
	Fetching   = "fetching"
	Preparing  = "preparing"
	Measuring  = "measuring"
	Uploading  = "uploading"
	Recording  = "recording"
	Completing = "completing"
)

// Points of a block's way to the disk, between measuring and uploading.
const (
	// Spooling: the block is written, but does not have its name yet.
	Spooling = "spooling"
	// Spooled: the block is durable, but was not sent yet.
	Spooled = "spooled"
)

// Points outside a job's life, where tests look at the state that a workflow
// shows.
const (
	// Expanding: the jobs of a stage are about to be written.
	Expanding = "expanding"
	// Reconciling: a pass of the reconciliation is about to begin.
	Reconciling = "reconciling"
	// Removing: what was kept long enough is about to be removed.
	Removing = "removing"
	// Looking: a project's commits are about to be looked at.
	Looking = "looking"
)

// The points of a request's looks, in order.
const (
	// Suspecting: a request's comparison is about to be recorded with its suspects.
	Suspecting = "suspecting"
	// Judging: the verdicts that a look allows are about to be stored.
	Judging = "judging"
	// Repeating: the jobs of the next look are about to be written.
	Repeating = "repeating"
)

// All lists the points of a job's life in order.
func All() []string {
	return []string{Fetching, Preparing, Measuring, Uploading, Recording, Completing}
}

// Points receives the points that a process reaches. The zero value does
// nothing.
type Points struct{ dir string }

// FromEnvironment reads [Env] with getenv.
func FromEnvironment(getenv func(string) string) Points { return Points{dir: getenv(Env)} }

// Reach reports a point and waits while it is held. It returns early when the
// context ends.
func (p Points) Reach(ctx context.Context, point string) {
	if p.dir == "" {
		return
	}
	hold := filepath.Join(p.dir, "hold-"+point)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// Each time anew: a test that begins to hold the point removes the file first. If
		// this fails, the test will notice the missing file.
		_ = os.WriteFile(filepath.Join(p.dir, "reached-"+point), nil, 0o666)
		if _, err := os.Stat(hold); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
