package measure

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// rlimit is a limit of each process of a command; see getrlimit(2).
type rlimit struct {
	resource int
	most     uint64
	// limit names, and lacks describes, what is missing without it.
	limit Limit
	lacks string
}

// rlimits returns the limits of each process, none above the collector's own: nobody without CAP_SYS_RESOURCE may raise these.
func (c SandboxConfig) rlimits() []rlimit {
	var limits []rlimit
	add := func(l rlimit) {
		var own unix.Rlimit
		if unix.Getrlimit(l.resource, &own) == nil {
			l.most = min(l.most, own.Max)
		}
		limits = append(limits, l)
	}
	if c.DiskBytes > 0 {
		add(rlimit{unix.RLIMIT_FSIZE, uint64(c.DiskBytes), LimitDisk, "a single file may exceed the limit for a moment"})
	}
	if c.OpenFiles > 0 {
		add(rlimit{unix.RLIMIT_NOFILE, uint64(c.OpenFiles), LimitOpenFiles, "open files are not limited"})
	}
	if c.PIDs > 0 && c.User != nil {
		add(rlimit{unix.RLIMIT_NPROC, uint64(c.PIDs), LimitPIDs, "the processes of the account are not limited"})
	}
	return limits
}

// setLimits limits a process that has just been started for an account, or for the collector's own (nil), and returns what cannot
// be limited. These limits belong to a process, not to a thread, so a command cannot inherit them from its launcher. The watch and
// the control groups see what it does in the microseconds before. The calling thread must be locked.
func setLimits(pid int, limits []rlimit, account *syscall.Credential) []Unenforced {
	failed := setAll(pid, limits)
	if account != nil && len(failed) > 0 {
		// Without CAP_SYS_RESOURCE, as in most containers, only a thread with the same real IDs may set them (prlimit(2)).
		_ = withRealIDs(account.Uid, account.Gid, func() { failed = setAll(pid, limits) })
	}
	return failed
}

func setAll(pid int, limits []rlimit) (failed []Unenforced) {
	for _, l := range limits {
		err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			failed = append(failed, Unenforced{l.limit, l.lacks + ": prlimit: " + err.Error()})
		}
	}
	return failed
}

// withRealIDs calls do while the calling thread has other real IDs, which are per thread in Linux; its effective IDs, and with
// them its rights, stay. Meanwhile processes of that account may signal the thread if they see it: keep do short.
func withRealIDs(uid, gid uint32, do func()) error {
	ownUser, ownGroup := unix.Getuid(), unix.Getgid()
	if err := setReal(unix.SYS_SETRESGID, int(gid)); err != nil {
		return err
	}
	err := setReal(unix.SYS_SETRESUID, int(uid))
	if err == nil {
		do()
		err = setReal(unix.SYS_SETRESUID, ownUser)
	}
	return errors.Join(err, setReal(unix.SYS_SETRESGID, ownGroup))
}

// setReal sets a real ID of the calling thread only, unlike the functions of package syscall.
func setReal(call uintptr, id int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(call, uintptr(id), unchanged, unchanged); errno != 0 {
		return errno
	}
	return nil
}
