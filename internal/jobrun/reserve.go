package jobrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/measure"
)

// Disk watches the file system on which a job works, which may also hold the service's own files: no command takes the
// reserve.
type Disk struct {
	// Space returns the room on the file system now, Used the bytes of files in a directory there that were changed since a time
	// (zero: of all files). Both are called under no lock.
	Space func() (diskspace.Space, error)
	Used  func(ctx context.Context, dir string, since time.Time) (int64, error)
	// Reserve is the room that stays free.
	Reserve diskspace.Reserve
	// Every is the interval between two looks at the room while a command runs; 0 means [DefaultDiskEvery].
	Every time.Duration
}

// DefaultDiskEvery is short enough that a fast disk loses less than the reserve between two looks.
const DefaultDiskEvery = 250 * time.Millisecond

// errDiskReserve ends a command when it and others have used the room up to the reserve.
var errDiskReserve = errors.New("the file system falls below its reserve")

// Short returns a *[diskspace.ShortError] if no job that works in dir may begin now.
func (d *Disk) Short(dir string) error {
	space, err := d.Space()
	if err != nil {
		return nil //nolint:nilerr // not known: no reserve is watched
	}
	return d.Reserve.Check(dir, space)
}

// room returns a *[diskspace.ShortError] if there is no room for a job to begin. It also records the room at the beginning.
func (r *runner) room() error {
	if r.m.Disk == nil {
		return nil
	}
	space, err := r.m.Disk.Space()
	if err != nil {
		return nil //nolint:nilerr // not known: no reserve is watched
	}
	r.atBegin, r.began = space, r.m.Now()
	return r.m.Disk.Reserve.Check(r.m.Sandbox.WorkDir(), space)
}

// guarded runs a command, and kills it before the file system falls below the reserve. The failure is the command's own if it
// took most of the room; else the error is a *[diskspace.ShortError].
func (r *runner) guarded(ctx context.Context, command measure.Command) (measure.Sample, *Failure, error) {
	if r.m.Disk == nil {
		sample, err := r.m.Sandbox.Run(ctx, command)
		return sample, nil, err
	}
	watched, stop := context.WithCancelCause(ctx)
	ended := make(chan *diskspace.ShortError, 1)
	go func() { ended <- r.m.Disk.watch(watched, r.m.Sandbox.WorkDir(), stop) }()
	sample, err := r.m.Sandbox.Run(watched, command)
	stop(nil)
	short := <-ended
	if short == nil || ctx.Err() != nil || sample.Status != measure.StatusCancelled {
		return sample, nil, err
	}
	if !r.tookMost(ctx, short.Space) {
		return sample, nil, short
	}
	return sample, &Failure{Kind: bench.FailTooSmall, Message: fmt.Sprintf(
		"killed because it filled the disk: %v; it needs a collector with more room", short)}, nil
}

// watch cancels the command as soon as less than the reserve is free, and reports it.
func (d *Disk) watch(ctx context.Context, dir string, cancel context.CancelCauseFunc) *diskspace.ShortError {
	every := d.Every
	if every <= 0 {
		every = DefaultDiskEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		space, err := d.Space()
		if err != nil {
			continue
		}
		if short, ok := errors.AsType[*diskspace.ShortError](d.Reserve.Check(dir, space)); ok {
			cancel(errDiskReserve)
			return short
		}
	}
}

// tookMost reports whether the job itself used at least half of the room available when it began: by existing files, including
// those that it keeps, or by deleted ones that its processes held open until they were killed.
func (r *runner) tookMost(ctx context.Context, at diskspace.Space) bool {
	disk := r.m.Disk
	bytes, files := disk.Reserve.Of(at)
	if at.Free >= bytes { // the number of files ran out
		return 2*(r.atBegin.FreeFiles-at.FreeFiles) >= r.atBegin.FreeFiles-files
	}
	used, err := disk.Used(ctx, r.m.Sandbox.WorkDir(), time.Time{})
	if err == nil && r.keeps() {
		var kept int64
		kept, err = disk.Used(ctx, r.m.CacheDir, r.began)
		used += kept
	}
	if err != nil {
		return true
	}
	if now, err := disk.Space(); err == nil {
		used += max(0, now.Free-at.Free)
	}
	return 2*used >= r.atBegin.Free-bytes
}
