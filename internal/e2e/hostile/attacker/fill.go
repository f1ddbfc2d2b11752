//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fill writes some files of twice the limit of disk space together, and keeps them.
func (t Targets) fill(dir string, files int64) (reached string, err error) {
	var made []*os.File
	defer func() {
		for _, f := range made {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	block := bytes.Repeat([]byte("filled!\n"), 128<<10)
	for written := int64(0); written < 2*t.Disk; written += int64(len(block)) {
		if written >= int64(len(made))*2*t.Disk/files {
			f, err := os.CreateTemp(dir, "filled-by-a-benchmark-")
			if err != nil {
				return "", fmt.Errorf("after %d bytes: %w", written, err)
			}
			made = append(made, f)
		}
		if _, err := made[len(made)-1].Write(block); err != nil {
			return "", fmt.Errorf("after %d bytes: %w", written, err)
		}
	}
	keep()
	return fmt.Sprintf("%d bytes in %s", 2*t.Disk, dir), nil
}

// keep stays with what it has made until it is killed: some limits are looked at only from time to time.
func keep() { time.Sleep(10 * time.Minute) }

// fillDisk writes one file, which the kernel stops.
func fillDisk(t Targets) (string, error) { return t.fill(".", 1) }

// fillTemp writes several, each of which it lets pass.
func fillTemp(t Targets) (string, error) { return t.fill(os.Getenv("TMPDIR"), 8) }

// fillCache writes to what outlives its job.
func fillCache(t Targets) (string, error) { return t.fill(os.Getenv("CACHE"), 8) }

// plantedName is the name of a file left where others might find it.
const plantedName = "planted-by-a-benchmark"

// leaveBehind leaves a file in every folder that all users share. The machine must not have them afterwards.
func leaveBehind(t Targets) (string, error) {
	var left []string
	for _, pattern := range t.Shared {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			if os.WriteFile(filepath.Join(dir, plantedName), nil, 0o666) == nil {
				left = append(left, dir)
			}
		}
	}
	return "", fmt.Errorf("a file is left in %s", strings.Join(left, " "))
}

// fillShared writes to the folder in memory.
func fillShared(t Targets) (string, error) {
	t.Disk = t.Memory
	return t.fill("/dev/shm", 32)
}

// fillInodes makes files in its temporary directory, fillCacheInodes where they outlive its job.
func fillInodes(t Targets) (string, error)      { return t.makeFiles("") }
func fillCacheInodes(t Targets) (string, error) { return t.makeFiles(os.Getenv("CACHE")) }

// makeFiles makes twice as many files as there may be, and keeps them.
func (t Targets) makeFiles(parent string) (reached string, err error) {
	dir, err := os.MkdirTemp(parent, "inodes-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for n := range 2 * t.Files {
		fd, err := unix.Open(filepath.Join(dir, strconv.Itoa(n)), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			return "", fmt.Errorf("after %d files: %w", n, err)
		}
		if err := unix.Close(fd); err != nil {
			return "", err
		}
	}
	keep()
	return fmt.Sprintf("%d files", 2*t.Files), nil
}

func fillMemory(t Targets) (string, error) {
	block, err := unix.Mmap(-1, 0, int(2*t.Memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	for at := 0; at < len(block); at += 4096 {
		block[at] = 1
	}
	return fmt.Sprintf("%d bytes", len(block)), nil
}

// flood prints more than is allowed.
func flood(_ Targets) (string, error) {
	line := bytes.Repeat([]byte("flood\033[2J\007"), 1<<16)
	for written := 0; written < 80_000_000; written += len(line) {
		if _, err := os.Stdout.Write(line); err != nil {
			return "", err
		}
	}
	return "", nil
}

// hostileNames makes files and folders that are hard to remove, and links to others.
func hostileNames(t Targets) (string, error) {
	for _, name := range []string{
		"-rf", "--", " ", "a\nb", "\x1b[2J", "\xff\xfe", "..." + strings.Repeat("x", 252), "'; rm -rf *", "$(id)", "\u202Egnp.exe",
	} {
		if err := os.WriteFile(name, nil, 0); err != nil {
			return "", err
		}
	}
	if err := errors.Join(os.Symlink(t.State, "state"), os.Symlink("/", "root"), os.Symlink("loop", "loop"), unix.Mkfifo("pipe", 0)); err != nil {
		return "", err
	}
	if err := errors.Join(os.Mkdir("closed", 0o700), os.WriteFile("closed/in-it", nil, 0o400), os.Chmod("closed", 0)); err != nil {
		return "", err
	}
	// The whole path is far longer than the kernel accepts.
	name := strings.Repeat("d", 200)
	for range 100 {
		if err := errors.Join(os.Mkdir(name, 0o755), os.Chdir(name)); err != nil {
			return "", err
		}
	}
	return "", errors.New("hostile names are left")
}

// linkAsOutput makes the file whose size is a metric a link out of the work directory.
func linkAsOutput(t Targets) (string, error) {
	return "", os.Symlink(filepath.Join(t.Outside, "kept"), "out")
}

func pipeAsOutput(_ Targets) (string, error) { return "", unix.Mkfifo("out", 0o666) }

// linkForAStep makes the folder into which a step writes a link out of the work directory.
func linkForAStep(t Targets) (string, error) { return "", os.Symlink(t.Outside, "out") }
