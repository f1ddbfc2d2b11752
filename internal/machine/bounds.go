package machine

import "math"

// Size is the total of a machine's resources. 0 means not known.
type Size struct {
	CPUs int
	// MemoryBytes is the memory, DiskBytes the size of the file system on which jobs work.
	MemoryBytes, DiskBytes int64
	// Files is the number of files that this file system can hold.
	Files int64
	// MaxProcesses is the number of processes and threads that the kernel allows.
	MaxProcesses int
}

// Bounds limit what the commands of a slot use together; 0 means no limit.
type Bounds struct {
	MemoryBytes, DiskBytes int64
	// Files counts directories, too.
	Files int64
	// Processes counts threads, too. OpenFiles applies to each process.
	Processes, OpenFiles int
}

const (
	// processes and processesPerCPU let a build start many programs of many threads, but no fork bomb take the machine.
	processes       = 4096
	processesPerCPU = 1024
	// files is above what a compiler's sources and builds have, and takes a second or so to count.
	files = 1_000_000
	// openFiles is above what compilers and servers use, and far below what a kernel has in total.
	openFiles = 65_536
	// leastDisk may be used by any slot: space for a toolchain and a build of it.
	leastDisk = 10 << 30
)

// DefaultBounds returns the bounds of a slot with a share of the machine, above 0 and at most 1. It gets its share of nine tenths
// of the memory and of half of the file system (at least 10 GiB, if it has them), a million files, at most half of what the file
// system holds, and 4096 processes and 1024 for each CPU of its share, at most a quarter of what the kernel allows. The rest is
// for the service and other slots.
func DefaultBounds(m Size, share float64) Bounds {
	share = min(max(share, 0), 1)
	part := func(of int64) int64 { return int64(math.Round(float64(of) * share)) }
	b := Bounds{
		MemoryBytes: part(m.MemoryBytes / 10 * 9),
		DiskBytes:   min(max(part(m.DiskBytes/2), leastDisk), m.DiskBytes),
		Files:       files,
		Processes:   processes + int(part(int64(processesPerCPU*m.CPUs))),
		OpenFiles:   openFiles,
	}
	if m.Files > 0 {
		b.Files = min(b.Files, m.Files/2)
	}
	if m.MaxProcesses > 0 {
		b.Processes = min(b.Processes, m.MaxProcesses/4)
	}
	return b
}
