package measure

import "time"

// Status describes how a command ended.
type Status string

const (
	// StatusExited: the program ended by itself, with an exit code or by a signal that this package did not send.
	StatusExited Status = "exited"
	// StatusTimedOut: killed because its timeout passed.
	StatusTimedOut Status = "timed_out"
	// StatusCancelled: killed, or not even started, because the context ended.
	StatusCancelled Status = "cancelled"
	// StatusOutOfMemory: the kernel killed a process of the command because a memory limit was reached: the sandbox's, an
	// enclosing one, or the machine's.
	StatusOutOfMemory Status = "out_of_memory"
	// StatusDiskFull: the work directory grew beyond the limit of disk space or inodes.
	StatusDiskFull Status = "disk_full"
	// StatusNotStarted: the program could not be started; Run also returns a [*StartError].
	StatusNotStarted Status = "not_started"
)

// Sample is the cost of one run of a command. Times, faults and context switches cover the command's whole process tree,
// including processes that outlived the main one until they were killed.
type Sample struct {
	Status Status `json:"status"`
	// ExitCode is the main process's exit code, or -1 when a signal ended it or it never ran.
	ExitCode int `json:"exit_code"`
	// Signal names the signal that ended the main process ("SIGKILL"), else it is empty.
	Signal string `json:"signal,omitempty"`

	// Wall is the time from just before the fork to the main process's exit, by the monotonic clock.
	Wall time.Duration `json:"wall_ns"`
	// UserCPU and SystemCPU are CPU time.
	UserCPU   time.Duration `json:"user_cpu_ns"`
	SystemCPU time.Duration `json:"system_cpu_ns"`
	// MaxRSSBytes is the largest resident set of any single process, in bytes; 0 means unknown, because it was not above
	// MaxRSSFloorBytes.
	MaxRSSBytes int64 `json:"max_rss_bytes,omitempty"`
	// MaxRSSFloorBytes is the resident set of the collector at the fork. Linux counts it into the started process
	// (exec_mmap in fs/exec.c keeps the larger of both), so smaller peaks cannot be told apart.
	MaxRSSFloorBytes int64 `json:"max_rss_floor_bytes,omitempty"`
	// MemoryPeakBytes is the control group's peak: all processes together, with page cache; 0 means unknown.
	MemoryPeakBytes int64 `json:"memory_peak_bytes,omitempty"`
	MinorFaults     int64 `json:"minor_faults"`
	MajorFaults     int64 `json:"major_faults"`
	// VoluntarySwitches are context switches because a thread waited, InvoluntarySwitches because it was preempted.
	VoluntarySwitches   int64 `json:"voluntary_switches"`
	InvoluntarySwitches int64 `json:"involuntary_switches"`

	// Counters holds the performance counters that the machine has, and only those.
	Counters map[Counter]uint64 `json:"counters,omitempty"`
	// Invalid lists counters that were not counting the whole time; such a sample must not be compared.
	Invalid []InvalidCounter `json:"invalid,omitempty"`

	// LeftBehind counts the processes still alive after the main process exited by itself; they were killed.
	LeftBehind int `json:"left_behind,omitempty"`
	// OutputBytes counts the bytes written to standard output and standard error, OutputDropped those beyond the limit of
	// Output.
	OutputBytes   int64 `json:"output_bytes"`
	OutputDropped int64 `json:"output_dropped,omitempty"`
	// Unenforced lists the limits that the sandbox could not enforce during this run.
	Unenforced []Unenforced `json:"unenforced,omitempty"`
}

// Succeeded reports whether the command ended by itself with exit code 0.
func (s Sample) Succeeded() bool { return s.Status == StatusExited && s.ExitCode == 0 }

// InvalidCounter is a counter that the kernel multiplexed: its value covers only part of the time.
type InvalidCounter struct {
	Counter Counter       `json:"counter"`
	Enabled time.Duration `json:"enabled_ns"`
	Running time.Duration `json:"running_ns"`
}

// Unenforced is a configured limit or setting that the collector cannot apply on this machine.
type Unenforced struct {
	// Name is one of the Limit constants.
	Name Limit `json:"name"`
	// Reason tells people what was refused and, where possible, what to change.
	Reason string `json:"reason"`
}

// Limit names something that a sandbox enforces.
type Limit string

const (
	// LimitCPUs: the CPUs that processes may use.
	LimitCPUs Limit = "cpus"
	// LimitMemory: memory of all processes together.
	LimitMemory Limit = "memory"
	// LimitSwap: no swap in addition to the memory limit.
	LimitSwap Limit = "swap"
	// LimitPIDs: number of processes and threads.
	LimitPIDs Limit = "pids"
	// LimitDisk: size of the work directory.
	LimitDisk Limit = "disk"
	// LimitTree: every process of a command is known and can be killed, even if it tries to escape.
	LimitTree Limit = "process_tree"
	// LimitInodes: number of files in the work directory.
	LimitInodes Limit = "inodes"
	// LimitOpenFiles: open files of each process.
	LimitOpenFiles Limit = "open_files"
	// LimitProcesses: commands neither see nor signal processes that are not theirs.
	LimitProcesses Limit = "processes"
	// LimitFiles: commands see and change only the files that are meant for them.
	LimitFiles Limit = "files"
	// LimitNetwork: commands that ask for no network have none.
	LimitNetwork Limit = "network"
	// LimitPrivileges: commands do not gain privileges by executing programs that give them, such as sudo.
	LimitPrivileges Limit = "privileges"
	// LimitAccount: commands run as a user other than root.
	LimitAccount Limit = "account"
	// LimitASLR: address space randomisation is off.
	LimitASLR Limit = "aslr"
	// LimitNice: the scheduling priority.
	LimitNice Limit = "nice"
)
