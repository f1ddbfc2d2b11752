package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slotGroups are the control groups of one slot, one per hierarchy in use. They are created once and used for all its runs.
//
// A process has to be in its groups before it executes anything. In version 2 the kernel starts it there (clone3 with
// CLONE_INTO_CGROUP). In version 1 it inherits the groups of the thread that starts it, so that only the launcher's thread
// is in them; the collector's process ID is therefore listed in cgroup.procs and must never be killed.
type slotGroups struct {
	// unified is the group in the version 2 hierarchy; nil if there is none.
	unified *os.File
	legacy  []legacyGroup
	// tree is the directory whose cgroup.procs lists the members.
	tree string
	// pidsMax is the control file that limits processes; empty without the controller. restingPIDs is its value outside a
	// strike.
	pidsMax     string
	restingPIDs string
	// memory is the directory with the memory controller's files, empty without.
	memory        string
	memoryUnified bool
	// dirs lists all directories of the slot, including unusable ones.
	dirs []string
}

// legacyGroup is a group in a version 1 hierarchy.
type legacyGroup struct {
	controllers []string

	dir    string
	origin string // the group that the collector itself is in
}

// newSlotGroups creates the groups of a slot as far as the machine allows and returns the limits that cannot be enforced.
func newSlotGroups(config SandboxConfig, hierarchies []hierarchy) (*slotGroups, []Unenforced) {
	g := &slotGroups{}
	have := map[string]string{} // controller -> directory
	refused := map[string]string{}
	for _, h := range hierarchies {
		if h.unified {
			g.addUnified(config, h, have, refused)
		}
	}
	for _, h := range hierarchies {
		if !h.unified && slices.ContainsFunc(h.controllers, func(c string) bool { return have[c] == "" }) {
			g.addLegacy(config, h, have, refused)
		}
	}
	if g.unified == nil {
		for _, controller := range []string{"pids", "freezer", "memory", "cpuset"} {
			if g.tree == "" {
				g.tree = have[controller]
			}
		}
	}
	var lacking []Unenforced
	lack := func(limit Limit, consequence, controller string, err error) {
		reason := refused[controller]
		switch {
		case err != nil:
			reason = err.Error()
		case config.DisableCgroups:
			reason = "control groups are disabled in the configuration"
		case reason == "":
			reason = fmt.Sprintf("this machine has no %s control group", controller)
		}
		lacking = append(lacking, Unenforced{Name: limit, Reason: consequence + ": " + reason})
	}
	if g.tree == "" {
		lack(LimitTree, "processes are found by their parents and their TMPDIR only", "pids", nil)
	}
	if dir := have["cpuset"]; len(config.CPUs) > 0 {
		var err error
		if dir != "" {
			err = writeControl(dir, "cpuset.cpus", config.CPUs.String())
		}
		if dir == "" || err != nil {
			lack(LimitCPUs, "a program may change its own CPU affinity", "cpuset", err)
		}
	}
	g.limitMemory(config.MemoryBytes, have["memory"], lack)
	g.limitPIDs(config.PIDs, have["pids"], lack)
	return g, lacking
}

// lackFunc records a limit that cannot be enforced. If err is nil, the reason is the lack of the controller.
type lackFunc func(limit Limit, consequence, controller string, err error)

func (g *slotGroups) inUnified(dir string) bool { return g.unified != nil && g.unified.Name() == dir }

func (g *slotGroups) addUnified(config SandboxConfig, h hierarchy, have, refused map[string]string) {
	refuse := func(err error) {
		for _, controller := range wantedControllers {
			refused[controller] = err.Error()
		}
	}
	base, err := baseGroup(config, h)
	if err != nil {
		refuse(err)
		return
	}
	dir := filepath.Join(base, groupName(config))
	// A group left by an earlier collector may have been frozen or killed: create a new one, unless it has processes.
	_ = os.Remove(dir)
	if err := makeGroup(dir, false); err != nil {
		refuse(err)
		return
	}
	g.dirs = append(g.dirs, dir)
	// Controllers come from the group above, which must not have processes itself unless it is the root.
	for _, controller := range []string{"cpuset", "memory", "pids"} {
		if err := enableController(base, h.mount, controller, config.CgroupParent != ""); err != nil {
			refused[controller] = err.Error()
		}
	}
	fd, err := os.Open(dir)
	if err == nil {
		// A collector that was killed while it was killing left the group frozen.
		_ = writeControl(dir, "cgroup.freeze", "0")
		err = tryCloneInto(fd)
	}
	if err != nil {
		if fd != nil {
			fd.Close()
		}
		refuse(fmt.Errorf("starting a process in %s (needs Linux 5.7): %w", dir, err))
		return
	}
	g.unified, g.tree = fd, dir
	for _, controller := range wordsIn(dir, "cgroup.controllers") {
		if slices.Contains(wantedControllers, controller) {
			have[controller] = dir
		}
	}
	g.memoryUnified = have["memory"] != ""
}

func (g *slotGroups) addLegacy(config SandboxConfig, h hierarchy, have, refused map[string]string) {
	base, err := baseGroup(config, h)
	dir := filepath.Join(base, groupName(config))
	if err == nil && h.outside != "" {
		err = errors.New(h.outside) // the launcher could not leave the group again
	}
	if err == nil {
		if err = makeGroup(dir, h.has("cpuset")); err == nil {
			g.dirs = append(g.dirs, dir)
		}
	}
	for _, controller := range h.controllers {
		switch {
		case have[controller] != "":
		case err != nil:
			refused[controller] = err.Error()
		default:
			have[controller] = dir
		}
	}
	if err == nil {
		g.legacy = append(g.legacy, legacyGroup{controllers: h.controllers, dir: dir, origin: filepath.Join(h.mount, h.own)})
	}
}

func groupName(config SandboxConfig) string {
	dir := sha256.Sum256([]byte(config.WorkDir))
	return "benchloom." + config.Name + "." + hex.EncodeToString(dir[:4])
}

// baseGroup returns the directory of the group below which the slot's group is created.
func baseGroup(config SandboxConfig, h hierarchy) (string, error) {
	if config.CgroupParent != "" {
		return filepath.Join(h.mount, config.CgroupParent), nil
	}
	if h.outside != "" {
		return "", errors.New(h.outside)
	}
	base := filepath.Join(h.mount, h.own)
	if h.unified && base != h.mount {
		// A service with DelegateSubgroup= runs one level below the group delegated to it, which systemd marks. That group
		// can have controllers below it because it has no process itself.
		if above := filepath.Dir(base); isDelegated(above) {
			return above, nil
		}
	}
	return base, nil
}

// isDelegated reports whether systemd has delegated a group: see "Delegation" in systemd's CGROUP_DELEGATION document.
func isDelegated(dir string) bool {
	var value [8]byte
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// enableController makes a controller available below dir and, if above is set, below its ancestors.
func enableController(dir, mount, controller string, above bool) error {
	if slices.Contains(wordsIn(dir, "cgroup.subtree_control"), controller) {
		return nil
	}
	if !slices.Contains(wordsIn(dir, "cgroup.controllers"), controller) {
		if !above || dir == mount {
			return fmt.Errorf("the %s controller is not delegated to control group %s", controller, dir)
		}
		if err := enableController(filepath.Dir(dir), mount, controller, above); err != nil {
			return err
		}
	}
	err := writeControl(dir, "cgroup.subtree_control", "+"+controller)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("control group %s holds processes itself and so cannot pass on its %s controller; run the collector "+
			"as a service with Delegate=yes and DelegateSubgroup=, or name another parent group", dir, controller)
	}
	return err
}

// wordsIn returns the words of a control file; none if it cannot be read.
func wordsIn(dir, file string) []string {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// tryCloneInto checks that the kernel starts processes in a group, without starting a program.
func tryCloneInto(group *os.File) error {
	missing := filepath.Join(group.Name(), "no-such-program")
	pid, err := syscall.ForkExec(missing, []string{missing}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())},
	})
	if err == nil {
		// It was killed before it could fail.
		_, err = wait4(pid, 0, nil)
		return errors.Join(errors.New("processes are killed at their start"), err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeGroup creates a group and its ancestors unless they exist. A version 1 cpuset accepts no process until it has CPUs and
// memory nodes, so it gets those of the group above.
func makeGroup(dir string, cpuset bool) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := makeGroup(filepath.Dir(dir), cpuset); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating control group: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("creating control group: %w", err)
	}
	if !cpuset {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if len(wordsIn(dir, file)) > 0 {
			continue
		}
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err == nil {
			err = writeControl(dir, file, strings.TrimSpace(string(value)))
		}
		if err != nil {
			return fmt.Errorf("creating control group: %w", err)
		}
	}
	return nil
}

func writeControl(dir, file, value string) error {
	path := filepath.Join(dir, file)
	// No os.WriteFile: it would create the file in a directory that is not a control group.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	return nil
}

// enter moves the calling thread, which must be locked, into the version 1 groups. A group that refuses it is dropped.
func (g *slotGroups) enter() error {
	tid := strconv.Itoa(unix.Gettid())
	for _, group := range g.legacy {
		if err := writeControl(group.dir, "tasks", tid); err != nil {
			g.leave()
			return err
		}
	}
	return nil
}

// leave moves the calling thread back to the collector's groups.
func (g *slotGroups) leave() {
	tid := strconv.Itoa(unix.Gettid())
	for _, group := range g.legacy {
		// On failure the thread leaves the group when it ends.
		_ = writeControl(group.origin, "tasks", tid)
	}
}

// members returns the living processes in the groups and in groups that a program created below them, without the collector; none if there is no group.
func (g *slotGroups) members() ([]int, error) {
	if g.tree == "" {
		return nil, nil
	}
	var pids []int
	self := os.Getpid()
	err := filepath.WalkDir(g.tree, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != self && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the processes of control group %s: %w", g.tree, err)
	}
	return pids, nil
}

// contains reports whether /proc/<pid>/cgroup names a group of the slot. In version 1 it does not do so for a dead process.
func (g *slotGroups) contains(pid int) bool {
	if g.tree == "" {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false
	}
	name := "/" + filepath.Base(g.tree)
	for line := range strings.Lines(string(text)) {
		path := strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(path, name) || strings.Contains(path, name+"/") {
			return true
		}
	}
	return false
}

// remove deletes the slot's groups, which must be empty. A configured parent group stays: other slots may share it.
func (g *slotGroups) remove() error {
	if g.unified != nil {
		g.unified.Close()
	}
	var failed error
	for _, dir := range g.dirs {
		failed = errors.Join(failed, removeGroup(dir))
	}
	return failed
}

// removeGroup removes a group and its descendants. The last thread of a group leaves it slightly after it ended; until then
// the group is busy.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing control group: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	for wait := time.Millisecond; ; wait *= 2 {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || wait > time.Second {
			return fmt.Errorf("removing control group: %w", err)
		}
		time.Sleep(wait)
	}
}
