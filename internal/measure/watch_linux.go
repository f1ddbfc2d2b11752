package measure

import (
	"context"
	"time"
)

const (
	// watchInterval is the interval at which a running command's limits are checked, with a few system calls.
	watchInterval = 250 * time.Millisecond
	// walkInterval is the shortest time between two routine walks through the work directory.
	walkInterval = 5 * time.Second
	// walkShare limits the cost of walks to 1/walkShare of the time.
	walkShare = 50
)

// watch checks the limits that the kernel does not enforce by itself until one is exceeded, and returns its status, or ""
// when the context ends.
func (s *Sandbox) watch(ctx context.Context, oomBefore int64) Status {
	memory := s.groups.memory != "" // also without a limit of its own: a container, or the machine, has one
	limit := s.config.disk()
	if !memory && limit == (disk{}) {
		return ""
	}
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	files := diskWatch{dir: s.workDir, limit: limit}
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-ticker.C:
		}
		if memory && s.groups.oomKills() > oomBefore {
			return StatusOutOfMemory
		}
		if limit != (disk{}) && files.full(ctx) {
			return StatusDiskFull
		}
	}
}

// diskWatch detects that a directory exceeds its limit without walking through it each time: while the file system has lost
// less than was left below the limit at the last walk, the directory cannot have exceeded it, unless others freed
// space; routine walks cover that.
type diskWatch struct {
	dir   string
	limit disk

	walked time.Time // of the last walk; zero before the first
	took   time.Duration
	used   disk // found by it
	free   disk // of the file system then
}

func (c SandboxConfig) disk() disk { return disk{c.DiskBytes, c.Inodes} }

func (d *diskWatch) full(ctx context.Context) bool {
	free, err := diskFree(d.dir)
	if err != nil {
		return false
	}
	age := time.Since(d.walked)
	// Some file systems have no fixed number of inodes and report none free.
	suspicious := d.used.plus(d.free.minus(free)).reaches(d.limit)
	due := d.walked.IsZero() || age > max(walkInterval, walkShare*d.took) || suspicious && age > walkShare*d.took
	if !due {
		return false
	}
	begin := time.Now()
	used, err := diskUsage(ctx, d.dir)
	if err != nil {
		return false
	}
	d.walked, d.took, d.used, d.free = time.Now(), time.Since(begin), used, free
	return used.exceeds(d.limit)
}
