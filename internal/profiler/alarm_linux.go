package profiler

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAlarm waits with a timer of the kernel that Go's network poller watches (timerfd_create(2)). For each timer of its own, Go's
// runtime also wakes its monitor thread, which then looks around every 20 µs for as long as anything runs. See docs/benchmarks.md.
type kernelAlarm struct {
	file *os.File
	conn syscall.RawConn
}

// NewAlarm returns an alarm that takes little CPU time.
func NewAlarm() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil { // out of descriptors
		return newTimerAlarm()
	}
	a := &kernelAlarm{file: os.NewFile(uintptr(fd), "timerfd")}
	if a.conn, err = a.file.SyscallConn(); err != nil || a.file.SetReadDeadline(time.Time{}) != nil { // it is not watched
		a.Close()
		return newTimerAlarm()
	}
	return a
}

func (a *kernelAlarm) Wait(d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, d.Nanoseconds()))} // 0 would disarm it
	set := false
	// The only errors are those of Stop and Close.
	return a.conn.Read(func(fd uintptr) bool {
		if !set {
			set = true
			arm(fd, &spec)
			return false
		}
		return expired(fd)
	}) == nil
}

func (a *kernelAlarm) Stop() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) } // in the past, so that a pending read ends

func (a *kernelAlarm) Close() { _ = a.file.Close() }

// arm and expired call the kernel without telling the scheduler, which would wake the monitor thread. Neither call waits.

func arm(fd uintptr, spec *unix.ItimerSpec) {
	// It fails only for times below zero.
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(spec)), 0, 0, 0)
}

func expired(fd uintptr) bool {
	var times uint64
	n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&times)), unsafe.Sizeof(times))
	return errno == 0 && n == unsafe.Sizeof(times)
}
