package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
	// MemoryBytes limits the memory of a command's processes together, page cache included; no swap is allowed in addition.
	// 0 means no limit.
	MemoryBytes int64
	// DiskBytes limits the size of WorkDir. It is checked about four times a second, so that a fast writer overshoots; a
	// single file never exceeds it. 0 means no limit.
	DiskBytes int64
	// PIDs limits the number of processes and threads; 0 means no limit.
	PIDs int
	// User is the account that commands run as; nil means the collector's own. Switching needs root.
	User *User
	// CgroupParent is the control group below which the slot's own is created, as a path in each hierarchy
	// ("/benchmarks"). Empty means the collector's own control group, which is right for a systemd service with Delegate=yes
	// and DelegateSubgroup=.
	CgroupParent string
	// DisableCgroups turns off the use of control groups, for machines where they must not be touched.
	DisableCgroups bool
}

// User is a numeric account.
type User struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

var slotName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (c SandboxConfig) check() error {
	switch {
	case !slotName.MatchString(c.Name):
		return fmt.Errorf("slot name %q: 1 to 100 letters, digits, '-', '_' or '.' are allowed", c.Name)
	case !filepath.IsAbs(c.WorkDir) || filepath.Clean(c.WorkDir) == "/":
		return fmt.Errorf("slot %s: the work directory must be an absolute path below /, is %q", c.Name, c.WorkDir)
	case c.MemoryBytes < 0 || c.DiskBytes < 0 || c.PIDs < 0:
		return fmt.Errorf("slot %s: limits must not be negative", c.Name)
	case c.CgroupParent != "" && !filepath.IsAbs(c.CgroupParent):
		return fmt.Errorf("slot %s: the parent control group must be an absolute path, is %q", c.Name, c.CgroupParent)
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
