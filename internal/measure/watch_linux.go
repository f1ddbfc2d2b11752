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
	// outlivingInterval applies to directories that outlive jobs: they are larger, and change less.
	outlivingInterval = time.Minute
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
	files := diskWatch{limit: limit, parts: s.diskParts()}
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

// diskWatch detects that directories together exceed a limit without walking through them each time: while the file system has
// lost less than was left below the limit at the last walks, they cannot have exceeded it, unless others freed space; routine
// walks cover that.
type diskWatch struct {
	limit disk
	parts []*diskPart
}

// diskPart is one directory of a diskWatch. All are on one file system.
type diskPart struct {
	dir string
	// every is the shortest time between two routine walks through it.
	every time.Duration

	walked time.Time // of the last walk; zero before the first
	took   time.Duration
	used   disk // found by it
	free   disk // of the file system then
}

func (c SandboxConfig) disk() disk { return disk{c.DiskBytes, c.Inodes} }

// diskParts are the directories that count towards the limits of disk and inodes.
func (s *Sandbox) diskParts() []*diskPart {
	return append([]*diskPart{{dir: s.workDir, every: walkInterval}}, s.outliving...)
}

func (d *diskWatch) full(ctx context.Context) bool {
	free, err := diskFree(d.parts[0].dir)
	if err != nil {
		return false
	}
	// Some file systems have no fixed number of inodes and report none free.
	suspicious := d.most(free).reaches(d.limit)
	walked := false
	var used disk
	for _, p := range d.parts {
		if p.due(suspicious) {
			if p.walk(ctx, free) != nil {
				return false
			}
			walked = true
		}
		used = used.plus(p.used)
	}
	return walked && used.exceeds(d.limit)
}

// most returns an upper bound of the usage: everything that the file system has lost since the oldest walk may be theirs.
func (d *diskWatch) most(free disk) disk {
	var used, lost disk
	for _, p := range d.parts {
		used, lost = used.plus(p.used), lost.most(p.free.minus(free))
	}
	return used.plus(lost)
}

func (p *diskPart) due(suspicious bool) bool {
	age := time.Since(p.walked)
	return p.walked.IsZero() || age > max(p.every, walkShare*p.took) || suspicious && age > walkShare*p.took
}

func (p *diskPart) walk(ctx context.Context, free disk) error {
	begin := time.Now()
	used, err := diskUsage(ctx, p.dir)
	if err != nil {
		return err
	}
	p.walked, p.took, p.used, p.free = time.Now(), time.Since(begin), used, free
	return nil
}
