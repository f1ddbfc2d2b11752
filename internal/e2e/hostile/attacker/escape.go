//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groups lists the directories of all control groups from the mounts down to the attacker's
// own, its own left out.
func groups() ([]string, error) {
	mounted, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(string(mounted)) {
		words := strings.Fields(line)
		if len(words) < 4 || words[2] != "cgroup" && words[2] != "cgroup2" {
			continue
		}
		for entry := range strings.Lines(string(own)) {
			parts := strings.SplitN(strings.TrimSpace(entry), ":", 3)
			if len(parts) != 3 || (words[2] == "cgroup2") != (parts[1] == "") || parts[1] != "" && !strings.HasSuffix(words[1], "/"+strings.TrimPrefix(parts[1], "name=")) {
				continue
			}
			for group := filepath.Dir(parts[2]); ; group = filepath.Dir(group) {
				dirs = append(dirs, filepath.Join(words[1], group))
				if group == "/" || group == "." {
					break
				}
			}
		}
	}
	if len(dirs) == 0 {
		return nil, errors.New("no control groups are in sight")
	}
	return dirs, nil
}

// move moves the attacker to each other control group that it can.
func move() (reached []string, refused error) {
	dirs, err := groups()
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		for _, name := range []string{"cgroup.procs", "tasks", "cgroup.threads"} {
			err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(os.Getpid())), 0)
			if err == nil {
				reached = append(reached, dir)
				break
			}
			refused = err
		}
	}
	return reached, refused
}

func cgroupParent(_ Targets) (string, error) {
	reached, err := move()
	if len(reached) > 0 {
		return strings.Join(reached, " "), nil
	}
	return "", err
}

// cgroupStay moves, leaves orphans there, and stays until it is killed.
func cgroupStay(_ Targets) (string, error) {
	reached, _ := move()
	if err := errors.Join(startStaying(os.Args[1]), startOrphan(os.Args[1])); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stdout, "moved to", reached)
	time.Sleep(10 * time.Minute)
	return "ten minutes", nil
}

// cgroupMount mounts hierarchies anew, where groups could be written.
func cgroupMount(_ Targets) (string, error) {
	dir, err := os.MkdirTemp("", "hierarchy")
	if err != nil {
		return "", err
	}
	try := func(kind, options string) func() (string, error) {
		return func() (string, error) {
			if err := unix.Mount("none", dir, kind, 0, options); err != nil {
				return "", fmt.Errorf("mounting %s %s: %w", kind, options, err)
			}
			return kind + " " + options, unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	return anyOf(try("cgroup2", ""), try("cgroup", "pids"), try("cgroup", "memory"))
}

// cgroupAgent opens what the kernel starts programs from.
func cgroupAgent(_ Targets) (string, error) {
	dirs, err := groups()
	if err != nil {
		return "", err
	}
	var tries []func() (string, error)
	for _, dir := range dirs {
		tries = append(tries,
			func() (string, error) { return opened(filepath.Join(dir, "release_agent"), os.O_WRONLY) },
			func() (string, error) { return opened(filepath.Join(dir, "notify_on_release"), os.O_WRONLY) },
		)
	}
	return anyOf(tries...)
}

func mounts(t Targets) (string, error) {
	dir, err := os.MkdirTemp("", "mounted")
	if err != nil {
		return "", err
	}
	try := func(what, source, kind string, flags uintptr) func() (string, error) {
		return func() (string, error) {
			if err := unix.Mount(source, dir, kind, flags, ""); err != nil {
				return "", fmt.Errorf("mounting %s: %w", what, err)
			}
			return what, unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	return anyOf(
		try("a tmpfs", "none", "tmpfs", 0),
		try("the suite", t.Suite, "", unix.MS_BIND),
		try("a new /proc", "none", "proc", 0),
		try("a new /sys", "none", "sysfs", 0),
	)
}

// unmounts removes what hides and protects. It would be the end of the machine if it were root
// outside of a namespace: then it does not try.
func unmounts(t Targets) (string, error) {
	if os.Geteuid() == 0 {
		return "root's rights, with which it could", nil
	}
	return t.uncover()
}

func (t Targets) uncover() (string, error) {
	var tries []func() (string, error)
	for _, dir := range []string{t.State, filepath.Dir(t.State), "/tmp", "/proc", "/sys/fs/cgroup", "/dev/shm", t.Suite, t.Artifact} {
		tries = append(tries,
			func() (string, error) { return "without its cover: " + dir, unix.Unmount(dir, unix.MNT_DETACH) },
			func() (string, error) {
				return "writable again: " + dir, unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_BIND, "")
			},
		)
	}
	return anyOf(tries...)
}

// insideName is the attack that goes on in a user namespace.
const insideName = "inside-user-namespace"

// userNamespace tries again as root of a user namespace of its own, with mounts of its own.
func userNamespace(_ Targets) (string, error) {
	inside := exec.Command("/proc/self/exe", os.Args[1], insideName) //nolint:noctx // it ends by itself
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := inside.CombinedOutput()
	if err == nil {
		return string(out), nil
	}
	return "", fmt.Errorf("%w: %s", err, out)
}

func insideUserNamespace(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return listed(filepath.Join(t.State, "tokens")) },
		func() (string, error) { return planted(t.Suite) },
		func() (string, error) { return planted(t.Artifact) },
		func() (string, error) { return t.uncover() },
		func() (string, error) { return cgroupMount(t) },
		func() (string, error) { return tokens(t) },
	)
}

// namespaces enters those of other processes.
func namespaces(t Targets) (string, error) {
	return t.ofOthers(func(dir string, pid int) (string, error) {
		for kind, flag := range map[string]int{"mnt": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID, "ipc": unix.CLONE_NEWIPC} {
			fd, err := unix.Open(filepath.Join(dir, "ns", kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return "", err
			}
			err = unix.Setns(fd, flag)
			unix.Close(fd)
			if err == nil || flag == unix.CLONE_NEWNS && errors.Is(err, unix.EINVAL) { // of a program with threads
				return fmt.Sprintf("the %s namespace of process %d", kind, pid), nil
			}
		}
		return "", errNothing
	})
}

// devices makes one and opens others for reading.
func devices(_ Targets) (string, error) {
	dir, err := os.MkdirTemp("", "devices")
	if err != nil {
		return "", err
	}
	made := func(what string, mode uint32, major, minor uint32) func() (string, error) {
		return func() (string, error) {
			path := filepath.Join(dir, what)
			if err := unix.Mknod(path, mode|0o600, int(unix.Mkdev(major, minor))); err != nil {
				return "", fmt.Errorf("making %s: %w", what, err)
			}
			return what, os.Remove(path)
		}
	}
	tries := []func() (string, error){
		made("null", unix.S_IFCHR, 1, 3), made("memory", unix.S_IFCHR, 1, 1), made("disk", unix.S_IFBLK, 8, 0),
	}
	for _, pattern := range []string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/vd*", "/dev/sd*", "/dev/nvme*", "/dev/loop*", "/dev/kvm", "/dev/fuse"} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if strings.HasSuffix(path, "/fuse") || strings.HasSuffix(path, "/kvm") {
				continue // open to everybody by design of many systems
			}
			tries = append(tries, func() (string, error) { return opened(path, os.O_RDONLY) })
		}
	}
	return anyOf(tries...)
}

// setuid starts programs with the rights of root, and looks whether they got them.
func setuid(_ Targets) (string, error) {
	if os.Geteuid() == 0 {
		return "root's rights", nil
	}
	var tries []func() (string, error)
	for _, name := range []string{"su", "passwd", "chsh", "newgrp", "gpasswd", "mount", "sudo"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		tries = append(tries, func() (string, error) { return rightsOf(path) })
	}
	return anyOf(tries...)
}

// rightsOf starts a program that waits for input, and reads as whom it runs.
func rightsOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSetuid == 0 {
		return "", fmt.Errorf("%s is not setuid: %w", path, errNothing)
	}
	input, output, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer output.Close()
	program := exec.Command(path) //nolint:noctx // it is killed below
	program.Stdin = input
	err = program.Start()
	input.Close()
	if err != nil {
		return "", err
	}
	defer func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}()
	// Its rights are decided when it is executed, before Start returns.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", program.Process.Pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) == 5 && words[0] == "Uid:" && words[2] == "0" {
			return path + " runs as root", nil
		}
	}
	return "", fmt.Errorf("%s runs without rights", path)
}
