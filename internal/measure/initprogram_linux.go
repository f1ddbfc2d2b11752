package measure

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// initProgram returns the program of init processes, a file in memory. If it is unset or returns nil,
// the whole program is used.
var initProgram atomic.Pointer[func() *os.File]

// lowestInit is above the descriptors that an init process begins with.
const lowestInit = 10

// UseInit lets sandboxes start the given program, which does nothing but call [InitMain], as their
// init processes. The whole program, used if the given one is empty or cannot run from memory, works
// as well, but its start takes ten times the CPU time. The function is called once, before the first
// start.
func UseInit(program func() []byte) {
	file := sync.OnceValue(func() *os.File {
		text := program()
		if len(text) == 0 {
			return nil
		}
		file, err := inMemory(text)
		if err != nil {
			return nil
		}
		return file
	})
	initProgram.Store(&file)
}

// inMemory returns a file that can be run but that nobody can change.
func inMemory(program []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(initName, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate(initName, flags)
	}
	if err != nil {
		return nil, err
	}
	written := os.NewFile(uintptr(fd), initName)
	defer written.Close() // a file open for writing cannot be run
	if _, err := written.Write(program); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, err
	}
	readable, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, err
	}
	defer readable.Close()
	high, err := unix.FcntlInt(readable.Fd(), unix.F_DUPFD_CLOEXEC, lowestInit)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(high), initName), nil
}

// initPath names the program of the next init process.
func initPath() string {
	if program := initProgram.Load(); program != nil {
		if file := (*program)(); file != nil {
			return "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
		}
	}
	return selfPath
}

// selfPath is the program itself.
const selfPath = "/proc/self/exe"
