package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	// ErrSlotBusy: another living process has a sandbox with the same work directory.
	ErrSlotBusy = errors.New("the work directory is in use by another running collector")
	// ErrRunning: the sandbox is running a command already; it runs one at a time.
	ErrRunning = errors.New("the sandbox is running another command")
	// ErrNotKilled: processes survived being killed, usually because they hang in the kernel; the sandbox cannot be used any
	// more.
	ErrNotKilled = errors.New("processes survive being killed")
)

// SandboxConfig describes the resources of one slot of a collector.
type SandboxConfig struct {
	// Name is the slot's name, unique on the machine and the same after a restart: letters, digits, "-", "_", ".".
	Name string
	// WorkDir is the slot's directory, created if missing. Commands run in it by default and it holds their temporary
	// directory. Only one open sandbox may use it.
	WorkDir string
	// CPUs are the logical CPUs that commands may use; empty means all.
	CPUs CPUList
	// Lend lets the calling process run on CPUs while the slot is empty: from [Sandbox.Clean] until the next command of
	// [Sandbox.Run] starts, but at most for a second after the last call. Otherwise the process must keep off them (see [Avoid]).
	// Only for a process without another slot. On systems other than Linux it does nothing.
	Lend bool
	// MemoryBytes limits the memory of a command's processes together, page cache included; no swap is allowed in addition.
	// 0 means no limit.
	MemoryBytes int64
	// DiskBytes limits the size of WorkDir and the [Shown.Writable] directories together. It is checked about four times a second,
	// so a fast writer overshoots; a single file never exceeds it. 0 means no limit.
	DiskBytes int64
	// Inodes limits the number of files and directories there, checked like DiskBytes. 0 means no limit.
	Inodes int64
	// PIDs limits the number of processes and threads; 0 means no limit. If commands have a User, it also limits those of that
	// account on the whole machine (RLIMIT_NPROC), so slots need accounts of their own.
	PIDs int
	// OpenFiles limits the open files of each process (RLIMIT_NOFILE); 0 leaves the collector's own limit.
	OpenFiles int
	// User is the account that commands run as; nil means the collector's own. Switching needs root.
	User *User
	// CgroupParent is the control group below which the slot's own is created, as a path in each hierarchy
	// ("/benchmarks"). Empty means the collector's own control group, which is right for a systemd service with Delegate=yes
	// and DelegateSubgroup=.
	CgroupParent string
	// DisableCgroups turns off the use of control groups, for machines where they must not be touched.
	DisableCgroups bool
	// Isolation keeps commands apart from the rest of the machine.
	Isolation Isolation
}

// Isolation says what commands can see and change on the machine. The zero value is for commands that need nothing but the
// programs of the machine: they see only their own processes, and change only files in the work directory and in a /tmp,
// /var/tmp and /dev/shm of their own. Everything else is read-only. Whether they have a network depends on the command.
//
// It needs Linux, root, and a program that begins with [InitMain]. [Sandbox.Unenforced] names what is missing.
// All paths are absolute and may be symbolic links.
type Isolation struct {
	// Off lets commands see and change what their account may.
	Off bool
	// ReadOnly are files and directories that stay visible, but not writable, within Hidden ones, the work directory or /tmp.
	ReadOnly []string
	// Hidden are directories that are empty for commands, except for paths below them that the work directory, ReadOnly or
	// [Shown.Writable] name, and files that are empty. A path that does not exist when the sandbox is created stays as it is.
	Hidden []string
	// Closed are directories that are empty like Hidden ones, but hold no secrets: [Sandbox.Show] may show what lies below.
	Closed []string

	// shown is added by [Sandbox.Show].
	shown Shown
}

// Shown are directories that the commands of one job see, wherever they lie.
type Shown struct {
	// ReadOnly are directories that they may only read. None may lie in a Hidden one.
	ReadOnly []string
	// Writable are directories that they may change, as far as their account may, also in Hidden ones. Their contents count
	// towards the limits of disk and inodes; they lie on the file system of the work directory.
	Writable []string
}

func (s Shown) equal(other Shown) bool {
	return slices.Equal(s.ReadOnly, other.ReadOnly) && slices.Equal(s.Writable, other.Writable)
}

// HiddenError reports a directory that commands must not see.
type HiddenError struct {
	// Dir lies in Hidden.
	Dir, Hidden string
}

// Error says what to do.
func (e *HiddenError) Error() string {
	return fmt.Sprintf("directory %s lies in %s, which is hidden from benchmarks: move it elsewhere", e.Dir, e.Hidden)
}

// unseen returns the directories that commands do not see anyway but may be shown: those in a Closed directory or in one that
// commands have for themselves. It fails with a *[HiddenError] if one lies in a Hidden directory. Commands see what the work
// directory or ReadOnly names. All paths have their symbolic links resolved.
func (i Isolation) unseen(workDir string, scratch, dirs []string) ([]string, error) {
	var unseen []string
	for _, dir := range dirs {
		seen, hidden := innermost(dir, slices.Concat([]string{workDir}, i.ReadOnly)), innermost(dir, i.Hidden)
		closed := innermost(dir, slices.Concat(i.Closed, scratch))
		switch {
		case len(hidden) > len(seen):
			return nil, &HiddenError{Dir: dir, Hidden: hidden}
		case len(closed) > len(seen):
			unseen = append(unseen, dir)
		}
	}
	slices.Sort(unseen)
	return slices.Compact(unseen), nil
}

// innermost returns the longest of the directories in which a path lies; empty if it lies in none.
func innermost(path string, dirs []string) string {
	found := ""
	for _, dir := range dirs {
		if within(path, dir) && len(dir) > len(found) {
			found = dir
		}
	}
	return found
}

// within reports whether a clean path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// User is a numeric account.
type User struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// slotName is compiled when it is needed: init processes, which start for each job, do not need it.
var slotName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

func (c SandboxConfig) check() error {
	switch {
	case !slotName().MatchString(c.Name):
		return fmt.Errorf("slot name %q: 1 to 100 letters, digits, '-', '_' or '.' are allowed", c.Name)
	case !filepath.IsAbs(c.WorkDir) || filepath.Clean(c.WorkDir) == "/":
		return fmt.Errorf("slot %s: the work directory must be an absolute path below /, is %q", c.Name, c.WorkDir)
	case c.MemoryBytes < 0 || c.DiskBytes < 0 || c.Inodes < 0 || c.PIDs < 0 || c.OpenFiles < 0:
		return fmt.Errorf("slot %s: limits must not be negative", c.Name)
	case c.CgroupParent != "" && !filepath.IsAbs(c.CgroupParent):
		return fmt.Errorf("slot %s: the parent control group must be an absolute path, is %q", c.Name, c.CgroupParent)
	}
	for _, path := range slices.Concat(c.Isolation.ReadOnly, c.Isolation.Hidden, c.Isolation.Closed) {
		if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
			return fmt.Errorf("slot %s: isolation needs absolute paths below /, not %q", c.Name, path)
		}
	}
	if _, err := NewCPUList(c.CPUs...); err != nil {
		return fmt.Errorf("slot %s: %w", c.Name, err)
	}
	return nil
}

// tempDir returns a slot's TMPDIR: always the same, and padded to a multiple of 64 bytes, so that commands have an
// environment of the same size even if the work directories of slots differ in length.
func tempDir(workDir string) string {
	const step = 64
	dir := filepath.Join(workDir, "tmp")
	return dir + strings.Repeat("_", (step-len(dir)%step)%step)
}

// prepareDirs creates the work directory and the temporary directory and returns the resolved path of the former.
func prepareDirs(config SandboxConfig) (string, error) {
	if err := os.MkdirAll(config.WorkDir, 0o755); err != nil {
		return "", fmt.Errorf("creating the work directory of slot %s: %w", config.Name, err)
	}
	workDir, err := filepath.EvalSymlinks(config.WorkDir)
	if err != nil {
		return "", fmt.Errorf("resolving the work directory of slot %s: %w", config.Name, err)
	}
	if err := own(workDir, config.User); err != nil {
		return "", err
	}
	return workDir, makeTempDir(workDir, config.User, false)
}

// makeTempDir ensures that the temporary directory exists, and empties it if fresh is set. Commands own the directory above
// it and may have replaced it; anything but a directory is removed, because root must not follow a symbolic link from there.
func makeTempDir(workDir string, user *User, fresh bool) error {
	dir := tempDir(workDir)
	info, err := os.Lstat(dir)
	switch {
	case err == nil && info.IsDir() && !fresh:
		return nil
	case err == nil:
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("emptying the temporary directory: %w", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("looking at the temporary directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("creating the temporary directory: %w", err)
	}
	return own(dir, user)
}

// own changes the owner of a directory to the account that commands run as.
func own(dir string, user *User) error {
	if user == nil {
		return nil
	}
	if err := os.Lchown(dir, int(user.UID), int(user.GID)); err != nil {
		return fmt.Errorf("giving %s to the benchmark account: %w", dir, err)
	}
	return nil
}
