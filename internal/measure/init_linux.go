package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the name under which the program runs itself as the init process of a sandbox.
const initName = "benchloom-sandbox-init"

// initControl is the descriptor on which the init process takes its order and requests. Each message is a packet.
const initControl = 3

// hasInit is set once the program has called InitMain: only then may it run itself as an init process.
var hasInit atomic.Bool

// InitMain must be called at the very beginning of main, and of TestMain, in programs that isolate commands: a sandbox runs the
// program once more, as the init process of the commands' namespaces. There InitMain does not return. Without the call nothing
// is isolated, and [Sandbox.Unenforced] says so.
func InitMain() {
	if len(os.Args) != 1 || os.Args[0] != initName {
		// Commands must not get the descriptors that this program inherited. Kernels before 5.11 lack the call.
		_ = unix.CloseRange(initControl, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
		hasInit.Store(true)
		return
	}
	if err := runInit(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// initOrder tells the init process what to do at its start.
type initOrder struct {
	// Mounts and Network tell whether the init process has its own namespaces for them.
	Mounts  bool
	Network bool
	View    view
}

// initAnswer is the init process's answer after its start, and to each request.
type initAnswer struct {
	// Failed is the reason why the order could not be carried out.
	Failed string
	// Lacking lists the parts that could not be.
	Lacking []Unenforced
	// Left is the number of living processes except the init process.
	Left int
	// Usage sums up the processes reaped since the last answer.
	Usage unix.Rusage
}

// Requests to the init process, a byte each.
const (
	requestSettle = 's' // reap and count
	requestKill   = 'k' // kill all first
)

// reaper is the init process: the parent of all orphans of its namespace.
type reaper struct {
	mu    sync.Mutex
	usage unix.Rusage
}

// runInit carries out the order and answers requests until the collector closes the connection. The death of this process
// kills all others of its namespace (pid_namespaces(7)).
func runInit() error {
	// The thread stays in blocking calls, so that requests cost no switch between threads.
	runtime.LockOSThread()
	// Commands that run as root may send signals.
	signal.Ignore()
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)

	buffer := make([]byte, 1<<20)
	n, err := unix.Read(initControl, buffer)
	if err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	var order initOrder
	if err := json.Unmarshal(buffer[:n], &order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	answer := order.carryOut()
	if err := answer.send(); err != nil || answer.Failed != "" {
		return err
	}
	r := &reaper{}
	// A trial run, so that everything it needs is in memory when the collector waits for an answer.
	if left, usage, err := r.settle(); err == nil {
		_, _ = json.Marshal(initAnswer{Left: left, Usage: usage})
	}
	answerAtOnce()
	go func() {
		for range died {
			r.reap()
		}
	}()
	for {
		var request [1]byte
		err := ignoringEINTR(func() (err error) { n, err = unix.Read(initControl, request[:]); return err })
		if err != nil || n == 0 {
			return err // the collector has ended
		}
		var answer initAnswer
		if request[0] == requestKill {
			// All processes of the namespace but this one: kill(2).
			if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				answer.Failed = err.Error()
			}
		}
		answer.Left, answer.Usage, err = r.settle()
		if err != nil {
			answer.Failed = err.Error()
		}
		if err := answer.send(); err != nil {
			return err
		}
	}
}

// answerAtOnce gives the calling thread precedence over all threads without real-time priority, if it may: others compute on its
// CPUs, and between a command's end and the next reading of the machine the collector waits only for the answer.
func answerAtOnce() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
}

func (a initAnswer) send() error {
	text, err := json.Marshal(a)
	if err == nil {
		_, err = unix.Write(initControl, text)
	}
	if err != nil {
		return fmt.Errorf("answering the collector: %w", err)
	}
	return nil
}

// carryOut arranges the namespaces.
func (o initOrder) carryOut() (answer initAnswer) {
	if o.Network {
		if err := raiseLoopback(); err != nil {
			// Without it commands fail in strange ways, but still have no network.
			answer.Lacking = append(answer.Lacking, Unenforced{LimitNetwork, "commands without network have no loopback interface: " + err.Error()})
		}
	}
	if o.Mounts {
		lacking, err := o.View.arrange()
		answer.Lacking = append(answer.Lacking, lacking...)
		if err != nil {
			answer.Failed = err.Error()
		}
	}
	return answer
}

// raiseLoopback brings up the interface lo; see netdevice(7).
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// reap waits for all dead children and adds up their usage.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var usage unix.Rusage
		got, err := wait4(-1, unix.WNOHANG|unix.WALL, &usage)
		if err != nil || got.pid <= 0 {
			return
		}
		r.usage = sumUsage(r.usage, usage)
	}
}

// settle reaps, counts the living processes, and hands over the usage.
func (r *reaper) settle() (left int, usage unix.Rusage, err error) {
	r.reap()
	all, err := listProcesses()
	if err != nil {
		return 0, usage, err
	}
	for pid, p := range all {
		if pid != os.Getpid() && !p.dead() {
			left++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	usage, r.usage = r.usage, unix.Rusage{}
	return left, usage, nil
}

// sumUsage adds up the fields that a sample reports.
func sumUsage(a, b unix.Rusage) unix.Rusage {
	return unix.Rusage{
		Utime: unix.NsecToTimeval(a.Utime.Nano() + b.Utime.Nano()), Stime: unix.NsecToTimeval(a.Stime.Nano() + b.Stime.Nano()),
		Maxrss: max(a.Maxrss, b.Maxrss), Minflt: a.Minflt + b.Minflt, Majflt: a.Majflt + b.Majflt,
		Nvcsw: a.Nvcsw + b.Nvcsw, Nivcsw: a.Nivcsw + b.Nivcsw,
	}
}

// startInit runs this program, or the program of [UseInit], as an init process in new namespaces. The calling thread must outlive
// the process.
func startInit(flags uintptr, control *os.File) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	attributes := &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=1"}, // it waits nearly always
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), control.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: flags},
	}
	path := initPath()
	pid, err = syscall.ForkExec(path, []string{initName}, attributes)
	if errors.Is(err, unix.EACCES) && path != selfPath { // some machines run nothing from memory
		pid, err = syscall.ForkExec(selfPath, []string{initName}, attributes)
	}
	return pid, err
}
