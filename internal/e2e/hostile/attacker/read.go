//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

var errNothing = errors.New("nothing of it is there")

// mostFiles and mostBytes bound a search.
const (
	mostFiles = 20_000
	mostBytes = 1 << 20
)

func (t Targets) holdsSecret(text []byte) bool {
	for _, needle := range t.Needle {
		if bytes.Contains(text, []byte(needle)) {
			return true
		}
	}
	return false
}

// read reads the beginning of a file, whatever it is, without waiting.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// opened reaches a file by opening it.
func opened(path string, flag int) (string, error) {
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

// listed reaches a directory by listing it.
func listed(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("%s: %w", dir, errNothing)
	}
	return fmt.Sprintf("%s has %d entries", dir, len(entries)), nil
}

// search looks for secrets below a directory.
func (t Targets) search(dir string) (string, error) {
	var found string
	files := 0
	refused := fmt.Errorf("%s: %w", dir, errNothing)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			refused = err
			return nil //nolint:nilerr // the next file may be readable
		}
		if path == t.Suite {
			return filepath.SkipDir // its own
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if files++; files > mostFiles {
			return filepath.SkipAll
		}
		text, err := read(path)
		if err != nil {
			refused = err
			return nil //nolint:nilerr // the next file may be readable
		}
		if t.holdsSecret(text) {
			found = path
			return filepath.SkipAll
		}
		return nil
	})
	if found == "" {
		return "", refused
	}
	return found + " holds a secret", nil
}

// others lists the processes that the attacker sees, those of the service that it does not
// see included, without itself.
func (t Targets) others() []int {
	pids := slices.Clone(t.Processes)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ofOthers tries something with every other process.
func (t Targets) ofOthers(try func(dir string, pid int) (string, error)) (string, error) {
	var last error
	for _, pid := range t.others() {
		reached, err := try(filepath.Join("/proc", strconv.Itoa(pid)), pid)
		if err == nil {
			return reached, nil
		}
		last = err
	}
	if last == nil {
		last = errNothing
	}
	return "", last
}

func (t Targets) secretIn(path string) (string, error) {
	text, err := read(path)
	if err != nil {
		return "", err
	}
	if !t.holdsSecret(text) {
		return "", fmt.Errorf("%s: %w", path, errNothing)
	}
	return path + " holds a secret", nil
}

func tokens(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return listed(filepath.Join(t.State, "tokens")) },
		func() (string, error) { return t.search(t.State) },
	)
}

// passedEnvironment looks for secrets among what it was given.
func passedEnvironment(t Targets) (string, error) {
	for _, variable := range os.Environ() {
		if t.holdsSecret([]byte(variable)) {
			return "a secret in its environment", nil
		}
	}
	return "", errNothing
}

func environments(t Targets) (string, error) {
	return t.ofOthers(func(dir string, _ int) (string, error) { return t.secretIn(filepath.Join(dir, "environ")) })
}

// commandLines is about those of other jobs: they are shown to readers, but not to jobs.
func commandLines(t Targets) (string, error) {
	return t.ofOthers(func(dir string, _ int) (string, error) { return t.secretIn(filepath.Join(dir, "cmdline")) })
}

func memoryOfOthers(t Targets) (string, error) {
	return t.ofOthers(func(dir string, pid int) (string, error) {
		if pid == 1 && os.Getpid() == 1 {
			return "", errNothing
		}
		return opened(filepath.Join(dir, "mem"), os.O_RDWR)
	})
}

func openFilesOfOthers(t Targets) (string, error) {
	return t.ofOthers(func(dir string, _ int) (string, error) { return listed(filepath.Join(dir, "fd")) })
}

// rootsOfOthers goes around private mounts.
func rootsOfOthers(t Targets) (string, error) {
	return t.ofOthers(func(dir string, _ int) (string, error) {
		return listed(filepath.Join(dir, "root", t.State, "tokens"))
	})
}

func spoolRead(t Targets) (string, error) { return t.inSlots("spool", listed) }

func logs(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return listed(filepath.Join(t.State, "logs")) },
		func() (string, error) { return opened(filepath.Join(t.State, "logs", "api.log"), os.O_RDONLY) },
	)
}

func record(t Targets) (string, error) {
	return anyOf(
		func() (string, error) {
			return opened(filepath.Join(t.State, "postgres", "data", "PG_VERSION"), os.O_RDONLY)
		},
		func() (string, error) { return opened(filepath.Join(t.State, "temporal", "temporal.db"), os.O_RDONLY) },
	)
}

func slotRead(t Targets) (string, error) { return t.secretIn(t.VictimFile) }

// inSlots tries something with a directory of each collector.
func (t Targets) inSlots(name string, try func(string) (string, error)) (string, error) {
	var tries []func() (string, error)
	for _, slot := range t.Slots {
		tries = append(tries, func() (string, error) { return try(filepath.Join(slot, name)) })
	}
	return anyOf(tries...)
}

// descriptors looks for open files that came from the collector.
func descriptors(_ Targets) (string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		// What is closed by exec has been opened since, such as the Go runtime's own.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		return fmt.Sprintf("descriptor %d is %s (%v)", fd, to, err), nil
	}
	return "", errNothing
}

// sharedMemory looks for segments of others and leaves one for the next job.
func sharedMemory(_ Targets) (string, error) {
	const key = 0x68737465 // any
	id, err := unix.SysvShmGet(key, 4096, 0o666)
	if err == nil {
		return fmt.Sprintf("the segment %d that an earlier run has left", id), nil
	}
	if _, made := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666); made != nil {
		return "", made
	}
	return "", err
}

// hiddenFolders looks for files of others in the folders that all share.
func hiddenFolders(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return t.search(filepath.Dir(t.State)) },
		func() (string, error) { return t.search("/dev/shm") },
	)
}
