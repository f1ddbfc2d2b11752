package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetStart takes the pages of the program's file out of the memory of this process, of which
// only its start has needed a fourth or more: initialization, and what the system has mapped
// around it. Pages that are needed again come back from the page cache.
func forgetStart() (err error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("reading what is mapped: %w", err)
	}
	defer func() { err = errors.Join(err, maps.Close()) }()
	for lines := bufio.NewScanner(maps); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		// Such as "00400000-01f51000 r-xp 00000000 fe:00 103 /usr/bin/benchloom".
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
			continue // what may be written must not be forgotten
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			return fmt.Errorf("reading what is mapped: %w", err)
		}
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("forgetting the pages at %s: %w", fields[0], failed)
		}
	}
}
