package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// initBound limits the time in which an init process starts, answers or ends, also on a loaded machine.
	initBound = 30 * time.Second
	// scratchBytes limits each temporary file system if memory has no limit; else they may take half of it.
	scratchBytes = 1 << 30
)

// space holds the namespaces that commands of a sandbox run in. Its init process is started by the launcher's thread and
// lives in the collector's own control groups and on its CPUs; commands are started by that thread, too, which enters the
// namespaces. So a command's parent is the collector, and nothing stands between both.
type space struct {
	pid     int
	control *os.File
	// id is the PID namespace, as /proc/<pid>/ns/pid shows it.
	id string
	// usable are its kinds of namespaces.
	usable []namespace
	// network tells whether there is a network namespace, mounts whether files are kept apart.
	network, mounts bool
	// gone is set once the init process has been reaped.
	gone bool
	// early is set if the space was arranged before anybody needed it.
	early *arranged
}

// arranged tells for which view a space was arranged, and when.
type arranged struct {
	view view
	// mounts are the file systems that the machine had before it started.
	mounts []string
	at     time.Time
}

// namespace is a kind of namespace that isolation uses.
type namespace struct {
	flag uintptr
	name string // in /proc/<pid>/ns
	// limit names, and lacks describes, what is missing without it.
	limit Limit
	lacks string
}

// namespaces lists the kinds in the order in which a thread enters them: what it opens by a path comes first.
var namespaces = []namespace{
	{unix.CLONE_NEWIPC, "ipc", LimitProcesses, "commands share System V IPC and message queues with the machine"},
	{unix.CLONE_NEWUTS, "uts", LimitFiles, "commands share the host name with the machine"},
	{unix.CLONE_NEWNET, "net", LimitNetwork, "commands that need no network have it"},
	{unix.CLONE_NEWPID, "pid", LimitProcesses, "commands see the processes of the machine"},
	{unix.CLONE_NEWNS, "mnt", LimitFiles, "commands see and may change files as far as their account may"},
}

// newSpace starts an init process with as many namespaces as the machine allows, and returns what is lacking. The space is
// nil if there can be none. It runs on the nursery's thread.
func newSpace(v view) (*space, []Unenforced) {
	if !hasInit.Load() {
		return nil, lackAll("this program does not begin with measure.InitMain")
	}
	usable := namespaces
	var lacking []Unenforced
	for {
		s, more, err := bootSpace(usable, v)
		if err == nil {
			return s, append(lacking, more...)
		}
		allowed, refused := tryNamespaces(usable)
		lacking = append(lacking, refused...)
		switch {
		case len(refused) > 0:
			usable = allowed
		case has(usable, unix.CLONE_NEWNS):
			// Some containers allow namespaces, but no mounts.
			reason := "what commands see cannot be arranged: " + err.Error()
			lacking = append(lacking, Unenforced{LimitFiles, reason},
				Unenforced{LimitProcesses, "commands see the processes of the machine, but cannot signal them: " + reason})
			usable = slices.DeleteFunc(slices.Clone(usable), func(n namespace) bool { return n.flag == unix.CLONE_NEWNS })
		default:
			return nil, lackAll(err.Error())
		}
		if !has(usable, unix.CLONE_NEWPID) {
			// Without it, nothing would hold the others.
			return nil, lackAll(explainAll(lacking))
		}
	}
}

func has(all []namespace, flag uintptr) bool {
	return slices.ContainsFunc(all, func(n namespace) bool { return n.flag == flag })
}

// lackAll returns what is missing without any namespace.
func lackAll(reason string) []Unenforced {
	return []Unenforced{
		{LimitProcesses, "commands see the processes of the machine, and may signal those of their account: " + reason},
		{LimitFiles, "commands see and may change files as far as their account may: " + reason},
		{LimitNetwork, "commands that need no network have it: " + reason},
	}
}

// explainAll joins the different reasons.
func explainAll(lacking []Unenforced) string {
	var reasons []string
	for _, l := range lacking {
		_, reason, _ := strings.Cut(l.Reason, ": ")
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// tryNamespaces tries each namespace on its own.
func tryNamespaces(all []namespace) (allowed []namespace, refused []Unenforced) {
	for _, n := range all {
		if err := tryNamespace(n.flag); err != nil {
			refused = append(refused, Unenforced{n.limit, n.lacks + ": " + explainNamespace(n, err)})
			continue
		}
		allowed = append(allowed, n)
	}
	return allowed, refused
}

// tryNamespace checks that the kernel makes a namespace, without starting a program.
func tryNamespace(flag uintptr) error {
	const missing = "/no-such-program"
	pid, err := syscall.ForkExec(missing, []string{missing}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flag}})
	if err == nil {
		_, err = wait4(pid, 0, nil)
		return err
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func explainNamespace(n namespace, err error) string {
	switch {
	case errors.Is(err, unix.EPERM) && os.Geteuid() != 0:
		return "namespaces need root (CAP_SYS_ADMIN); run the collector as root, with accounts for its commands"
	case errors.Is(err, unix.EPERM):
		return "namespaces are refused although this is root: CAP_SYS_ADMIN is missing (container without privileges?)"
	case errors.Is(err, unix.ENOSPC):
		return fmt.Sprintf("the sysctl user.max_%s_namespaces allows no more %s namespaces", n.name, n.name)
	case errors.Is(err, unix.EINVAL):
		return fmt.Sprintf("this kernel has no %s namespaces", n.name)
	default:
		return fmt.Sprintf("%s namespaces are refused: %v", n.name, err)
	}
}

// bootSpace starts an init process with the given namespaces and waits until it has arranged them.
func bootSpace(usable []namespace, v view) (*space, []Unenforced, error) {
	s, err := startSpace(usable)
	if err != nil {
		return nil, nil, err
	}
	lacking, err := s.arrange(v)
	if err != nil {
		return nil, nil, errors.Join(err, s.retire(nothing))
	}
	return s, lacking, nil
}

// startSpace starts an init process with the given namespaces, in which nothing is arranged yet.
func startSpace(usable []namespace) (*space, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connecting to an init process: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "init")
	defer theirs.Close() // so that reading ends if the process does
	// Nonblocking, so that reading has a time limit.
	err = unix.SetNonblock(pair[0], true)
	s := &space{control: os.NewFile(uintptr(pair[0]), "init"), usable: usable}
	flags := uintptr(0)
	for _, n := range usable {
		flags |= n.flag
	}
	s.network, s.mounts = has(usable, unix.CLONE_NEWNET), has(usable, unix.CLONE_NEWNS)
	if err == nil {
		s.pid, err = startInit(flags, theirs)
	}
	if err != nil {
		s.control.Close()
		return nil, fmt.Errorf("starting an init process: %w", err)
	}
	return s, nil
}

// arrange waits until the init process has arranged the space, and returns what is lacking.
func (s *space) arrange(v view) ([]Unenforced, error) {
	err := s.order(v)
	var answer initAnswer
	if err == nil {
		answer, err = s.answer()
	}
	if err == nil {
		s.id, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", s.pid))
	}
	if err != nil {
		return nil, fmt.Errorf("starting an init process: %w", err)
	}
	return answer.Lacking, nil
}

// order tells the init process to arrange the space, unless it has been told already.
func (s *space) order(v view) error {
	if s.early != nil {
		return nil
	}
	text, err := json.Marshal(initOrder{View: v, Mounts: s.mounts, Network: s.network})
	if err != nil {
		return err
	}
	return s.send(text)
}

// startAhead starts a space and has it arranged for the view that the next job probably has, without waiting. If arranging fails,
// the next job has a space arranged for itself.
func startAhead(usable []namespace, v view) (*space, error) {
	mounts, err := mountPoints("thread-self") // one that comes now makes the space useless, not wrong
	if err != nil {
		return nil, err
	}
	s, err := startSpace(usable)
	if err == nil && s.order(v) == nil {
		s.early = &arranged{view: v, mounts: mounts, at: time.Now()}
	}
	return s, err
}

// suits reports whether the space, in which nothing has run, shows the machine's files as they are and as a view has them. It has
// copies of the file systems mounted at its start, and hides what existed when it was arranged; if it was, that was just now.
func (s *space) suits(v view) bool {
	if a := s.early; a != nil && (!a.view.equal(v) || time.Since(a.at) > betweenJobs) {
		return false
	}
	if !s.mounts {
		return true
	}
	own, err := mountPoints("thread-self")
	if err != nil {
		return false
	}
	if s.early != nil {
		return slices.Equal(own, s.early.mounts)
	}
	theirs, err := mountPoints(strconv.Itoa(s.pid))
	return err == nil && slices.Equal(own, theirs)
}

// mountPoints lists where a process has file systems, and which; see proc_pid_mountinfo(5).
func mountPoints(process string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", process, "mountinfo"))
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 5 {
			points = append(points, strings.Join(fields[2:6], " ")) // device, root, mount point, options
		}
	}
	slices.Sort(points)
	return points, nil
}

// ask sends a message and returns the answer.
func (s *space) ask(message []byte) (initAnswer, error) {
	if err := s.send(message); err != nil {
		return initAnswer{}, err
	}
	return s.answer()
}

func (s *space) send(message []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(initBound)); err != nil {
		return err
	}
	if _, err := s.control.Write(message); err != nil {
		return fmt.Errorf("%w: %w", errInitLost, err)
	}
	return nil
}

func (s *space) answer() (answer initAnswer, err error) {
	if err := s.control.SetReadDeadline(time.Now().Add(initBound)); err != nil {
		return answer, err
	}
	buffer := make([]byte, 64<<10)
	n, err := s.control.Read(buffer)
	switch {
	case errors.Is(err, io.EOF):
		return answer, errInitLost
	case err != nil:
		return answer, fmt.Errorf("%w: %w", errInitLost, err)
	}
	if err := json.Unmarshal(buffer[:n], &answer); err != nil {
		return answer, fmt.Errorf("reading the answer of the init process: %w", err)
	}
	if answer.Failed != "" {
		return answer, errors.New(answer.Failed)
	}
	return answer, nil
}

// errInitLost reports an init process that does not answer.
var errInitLost = errors.New("the init process of the sandbox has ended, and all commands with it, or hangs: something " +
	"outside the sandbox killed or stopped it")

// settle returns the number of processes left in the space, and the usage of those that ended without a parent.
func (s *space) settle() (initAnswer, error) { return s.ask([]byte{requestSettle}) }

// kill kills all processes in the space but its init process.
func (s *space) kill() (initAnswer, error) { return s.ask([]byte{requestKill}) }

// alive reports whether the init process lives.
func (s *space) alive() bool {
	if s == nil || s.gone {
		return false
	}
	p, ok := readProcess(s.pid)
	return ok && !p.dead()
}

// contains reports whether a process, dead or alive, is in the space. The init process is not counted.
func (s *space) contains(pid int) bool {
	if s == nil || pid == s.pid {
		return false
	}
	id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return err == nil && id == s.id
}

// retire ends the init process, which the kernel lets end only after all other processes of the space, wherever they are
// hidden. So the space is empty if retire succeeds; after a time limit, it returns ErrNotKilled. The function reap must wait
// for processes that are the collector's own children.
func (s *space) retire(reap func() error) error {
	if s == nil || s.gone {
		return nil
	}
	s.control.Close()
	_ = unix.Kill(s.pid, unix.SIGKILL) // not reaped yet, so it is no other process
	deadline := time.Now().Add(initBound)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		got, err := wait4(s.pid, unix.WNOHANG, nil)
		if err != nil {
			return fmt.Errorf("waiting for the init process of the sandbox: %w", err)
		}
		if got.pid == s.pid {
			s.gone = true
			return nil
		}
		if wait > time.Millisecond { // it ends immediately if none of the others is a child of the collector
			if err := reap(); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: the init process %d of the sandbox does not end", ErrNotKilled, s.pid)
		}
		time.Sleep(wait)
	}
}

// doors are open namespaces of a space, through which a thread enters it.
type doors struct {
	kinds []namespace
	files []*os.File
	// networks are the machine's network and that of the space, for [launcher.connect]; nil without a space of its own.
	networks map[bool]*os.File
}

// doors opens the namespaces of the space. The calling thread must see the machine's processes and have its network.
func (s *space) doors() (doors, error) {
	d, err := openDoors(strconv.Itoa(s.pid), s.usable)
	if err != nil || !s.network {
		return d, err
	}
	// The network is entered separately.
	at := slices.IndexFunc(d.kinds, func(n namespace) bool { return n.flag == unix.CLONE_NEWNET })
	d.networks = map[bool]*os.File{false: d.files[at]}
	d.kinds, d.files = slices.Delete(d.kinds, at, at+1), slices.Delete(d.files, at, at+1)
	if d.networks[true], err = openNamespace("thread-self", "net"); err != nil {
		d.close()
	}
	return d, err
}

// openDoors opens namespaces of a process.
func openDoors(process string, kinds []namespace) (doors, error) {
	d := doors{kinds: slices.Clone(kinds)}
	for _, n := range kinds {
		file, err := openNamespace(process, n.name)
		if err != nil {
			d.close()
			return doors{}, err
		}
		d.files = append(d.files, file)
	}
	return d, nil
}

func openNamespace(process, name string) (*os.File, error) {
	file, err := os.Open(filepath.Join("/proc", process, "ns", name))
	if err != nil {
		return nil, fmt.Errorf("entering namespaces: %w", err)
	}
	return file, nil
}

// enter moves the calling thread, which must be locked and never be released, into the space, except for its network. A thread in
// a space may enter another: it keeps its capabilities, and its own processes are in the machine's PID namespace.
func (d doors) enter() error {
	// A thread can have its own view only if it shares neither root nor working directory.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering namespaces: %w", err)
	}
	for i, n := range d.kinds {
		if err := unix.Setns(int(d.files[i].Fd()), int(n.flag)); err != nil {
			return fmt.Errorf("entering the %s namespace: %w", n.name, err)
		}
	}
	return nil
}

// close closes what is open.
func (d doors) close() {
	for _, file := range d.files {
		file.Close()
	}
	closeAll(d.networks)
}

func closeAll(files map[bool]*os.File) {
	for _, file := range files {
		if file != nil {
			file.Close()
		}
	}
}
