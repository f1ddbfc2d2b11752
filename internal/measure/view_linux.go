package measure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// view describes the machine's files as commands see them.
type view struct {
	Writable, ReadOnly, Hidden []string
	// ScratchBytes limits each temporary file system.
	ScratchBytes int64
}

// newView returns the view of a sandbox's commands.
func newView(config SandboxConfig, workDir string) view {
	shown := config.Isolation.shown
	v := view{
		Writable: append([]string{workDir}, shown.Writable...), ReadOnly: slices.Concat(config.Isolation.ReadOnly, shown.ReadOnly),
		Hidden: slices.Concat(config.Isolation.Hidden, config.Isolation.Closed), ScratchBytes: scratchBytes,
	}
	if config.MemoryBytes > 0 {
		v.ScratchBytes = config.MemoryBytes / 2
	}
	return v
}

func (v view) equal(other view) bool {
	return slices.Equal(v.Writable, other.Writable) && slices.Equal(v.ReadOnly, other.ReadOnly) && slices.Equal(v.Hidden, other.Hidden) &&
		v.ScratchBytes == other.ScratchBytes
}

// kept is a path that stays visible below what is hidden.
type kept struct {
	path     string
	writable bool
	fd       int
	dir      bool
}

// Temporary file systems that commands have for themselves. /var/tmp is the same as /tmp.
const (
	scratchTemp   = "/tmp"
	scratchVar    = "/var/tmp"
	scratchMemory = "/dev/shm"
)

// ownDirs are the directories in which commands see only what is theirs.
var ownDirs = []string{scratchTemp, scratchVar, scratchMemory}

const hardened = unix.MS_NOSUID | unix.MS_NODEV

// arrange makes the view in the calling process's own mount namespace. It returns the parts of the machine that it cannot
// protect; after an error the namespace must not be used.
func (v view) arrange() ([]Unenforced, error) {
	// Mounts made here do not show elsewhere, and mounts made elsewhere do not show here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	keep, err := v.keep()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, k := range keep {
			unix.Close(k.fd)
		}
	}()
	lacking := sealMachine(keep)
	if err := mountProc(); err != nil {
		return nil, err
	}
	// After the other mounts, as they hide what lies below.
	if err := v.hide(keep); err != nil {
		return nil, err
	}
	mountTerminals()
	return lacking, nil
}

// keep makes each path that stays visible a mount of its own, the outer ones first.
func (v view) keep() ([]kept, error) {
	var all []kept
	add := func(paths []string, writable bool) error {
		for _, path := range paths {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				return fmt.Errorf("a path that commands need: %w", err)
			}
			all = append(all, kept{path: real, writable: writable, fd: -1})
		}
		return nil
	}
	if err := errors.Join(add(v.Writable, true), add(v.ReadOnly, false)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b kept) int { return cmp.Compare(len(a.path), len(b.path)) })
	for _, k := range all {
		if err := unix.Mount(k.path, k.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return nil, fmt.Errorf("mounting %s: %w", k.path, err)
		}
	}
	for i := range all {
		k := &all[i]
		var err error
		if k.fd, err = unix.Open(k.path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("opening %s: %w", k.path, err)
		}
		var stat unix.Stat_t
		if err := unix.Fstat(k.fd, &stat); err != nil {
			return nil, fmt.Errorf("looking at %s: %w", k.path, err)
		}
		k.dir = stat.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	return all, nil
}

// writableAt reports whether the innermost kept path around a mount is writable.
func writableAt(keep []kept, mount string) bool {
	writable := false
	for _, k := range keep { // the inner ones come last
		if within(mount, k.path) {
			writable = k.writable
		}
	}
	return writable
}

// sealMachine makes every mount read-only except those that commands may change.
func sealMachine(keep []kept) []Unenforced {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []Unenforced{{LimitFiles, "commands may change files of the machine as far as their account may: " + err.Error()}}
	}
	var failed []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		mount := unescapeMount(fields[4])
		if writableAt(keep, mount) {
			continue
		}
		err := remountReadOnly(mount)
		// What root cannot look up is mounted by a user for that user, or below another mount.
		if err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			failed = append(failed, fmt.Sprintf("%s (%v)", mount, err))
		}
	}
	if len(failed) > 0 {
		return []Unenforced{{LimitFiles, "these cannot be made read-only: " + strings.Join(failed, ", ")}}
	}
	return nil
}

// remountReadOnly makes the mount at a path read-only and leaves its other flags.
func remountReadOnly(path string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return err
	}
	// Their values are the same as those of mount(2).
	const flags = unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME | unix.ST_NODIRATIME | unix.ST_RELATIME
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|uintptr(stat.Flags)&flags, "")
}

// Parts of /proc that concern the whole machine. Users may change or read few of them, root most.
var (
	procReadOnly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	procHidden   = []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list"}
)

// mountProc mounts the /proc of the own PID namespace.
func mountProc() error {
	if err := unix.Mount("proc", "/proc", "proc", hardened|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, path := range procReadOnly {
		err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = remountReadOnly(path)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("making %s read-only: %w", path, err)
		}
	}
	for _, path := range procHidden {
		if err := mask(path, 0); err != nil {
			return err
		}
	}
	return nil
}

// hide covers hidden paths, gives the temporary directories file systems of their own, the outer ones first, and puts back
// in each what stays visible.
func (v view) hide(keep []kept) error {
	scratch := []string{}
	for _, path := range []string{scratchTemp, scratchVar, scratchMemory} {
		// Some of them may be links to others, or missing.
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(scratch, real) {
			scratch = append(scratch, real)
		}
	}
	covers := slices.Clone(scratch)
	for _, path := range v.Hidden {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(covers, real) {
			covers = append(covers, real)
		}
	}
	slices.SortStableFunc(covers, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	var seal []string
	for _, path := range covers {
		size := int64(0)
		if slices.Contains(scratch, path) {
			size = v.ScratchBytes
		} else {
			seal = append(seal, path)
		}
		if err := mask(path, size); err != nil {
			return err
		}
		for _, k := range keep {
			if !within(k.path, path) {
				continue
			}
			if err := putBack(k); err != nil {
				return err
			}
		}
	}
	for _, path := range seal {
		if slices.ContainsFunc(keep, func(k kept) bool { return k.path == path }) {
			continue // it is visible again
		}
		if err := remountReadOnly(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("hiding %s: %w", path, err)
		}
	}
	return nil
}

// mask covers a directory with an empty file system, writable for everybody if it has a size, and a file with /dev/null. It
// skips a path that does not exist, or no longer does.
func mask(path string, size int64) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
	case !info.IsDir():
		err = unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
	case size > 0:
		err = unix.Mount("tmpfs", path, "tmpfs", hardened, "mode=1777,size="+strconv.FormatInt(size, 10))
	default:
		// Room for the directories in which others are mounted.
		err = unix.Mount("tmpfs", path, "tmpfs", hardened, "mode=0755,size=1m")
	}
	if err != nil {
		return fmt.Errorf("hiding %s: %w", path, err)
	}
	return nil
}

// putBack mounts a kept path where it was.
func putBack(k kept) error {
	dir := k.path
	if !k.dir {
		dir = filepath.Dir(dir)
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil && !k.dir {
		var file *os.File
		if file, err = os.OpenFile(k.path, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err == nil {
		err = unix.Mount("/proc/self/fd/"+strconv.Itoa(k.fd), k.path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("showing %s: %w", k.path, err)
	}
	return nil
}

// mountTerminals gives commands pseudo terminals and message queues of their own, if the machine has any: the machine's are
// limited in number. On failure commands use the machine's, with the rights of the account.
func mountTerminals() {
	if _, err := os.Stat("/dev/pts"); err == nil {
		_ = unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=1024")
	}
	if _, err := os.Stat("/dev/mqueue"); err == nil {
		_ = unix.Mount("mqueue", "/dev/mqueue", "mqueue", hardened|unix.MS_NOEXEC, "")
	}
}
