package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (g *slotGroups) limitMemory(limit int64, dir string, lack lackFunc) {
	g.memory = dir
	if dir == "" {
		if limit > 0 {
			lack(LimitMemory, "memory is not limited", "memory", nil)
		}
		return
	}
	var memory, swap error
	if g.memoryUnified {
		value := "max"
		if limit > 0 {
			value = strconv.FormatInt(limit, 10)
		}
		memory = writeControl(dir, "memory.max", value)
		if limit > 0 {
			swap = writeControl(dir, "memory.swap.max", "0")
			// Kill all processes at once: half a command is of no use. Needs Linux 4.19; the watch does it without.
			_ = writeControl(dir, "memory.oom.group", "1")
		}
	} else {
		// Memory with swap must never be below memory alone: lift it first.
		_ = writeControl(dir, "memory.memsw.limit_in_bytes", "-1")
		value := "-1"
		if limit > 0 {
			value = strconv.FormatInt(limit, 10)
		}
		memory = writeControl(dir, "memory.limit_in_bytes", value)
		if limit > 0 {
			swap = writeControl(dir, "memory.memsw.limit_in_bytes", value)
		}
	}
	switch {
	case limit > 0 && memory != nil:
		lack(LimitMemory, "memory is not limited", "memory", memory)
	case swap != nil && swapConfigured():
		lack(LimitSwap, "processes may swap beyond their memory limit", "memory", swap)
	}
}

// swapConfigured reports whether the machine has any swap; if not, a missing swap limit does not matter.
func swapConfigured() bool {
	var info unix.Sysinfo_t
	return unix.Sysinfo(&info) != nil || info.Totalswap > 0
}

func (g *slotGroups) limitPIDs(limit int, dir string, lack lackFunc) {
	if dir == "" {
		if limit > 0 {
			lack(LimitPIDs, "the number of processes is not limited", "pids", nil)
		}
		return
	}
	g.pidsMax, g.restingPIDs = filepath.Join(dir, "pids.max"), "max"
	if limit > 0 {
		if !g.inUnified(dir) {
			limit++ // the launcher's thread
		}
		g.restingPIDs = strconv.Itoa(limit)
	}
	if err := writeControl(dir, "pids.max", g.restingPIDs); err != nil && limit > 0 {
		lack(LimitPIDs, "the number of processes is not limited", "pids", err)
	}
}

// strike keeps the members from starting processes while they are killed one by one; calm lets the next command run.
//
// It does not use cgroup.kill: Linux 6.14 and some earlier versions (found with 6.18) compare the kill count of the group
// that a process starts in by CLONE_INTO_CGROUP with its parent's group's, and so kill every later process of a group killed
// once.
func (g *slotGroups) strike() {
	g.freeze("1")
	if g.pidsMax != "" {
		_ = writeControl(filepath.Dir(g.pidsMax), "pids.max", "0")
	}
}

func (g *slotGroups) calm() {
	g.freeze("0")
	if g.pidsMax != "" {
		_ = writeControl(filepath.Dir(g.pidsMax), "pids.max", g.restingPIDs)
	}
}

// freeze stops all members of a version 2 group; unlike in version 1, frozen processes can be killed. Linux 5.2.
func (g *slotGroups) freeze(state string) {
	if g.unified != nil {
		_ = writeControl(g.tree, "cgroup.freeze", state)
	}
}

// oomKills returns the number of processes killed by the kernel at a memory limit so far.
func (g *slotGroups) oomKills() int64 {
	if g.memory == "" {
		return 0
	}
	file := "memory.oom_control" // has oom_kill since Linux 4.13
	if g.memoryUnified {
		file = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(g.memory, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return kills
		}
	}
	return 0
}

// resetPeak starts a new measurement of the memory peak and returns a function that reads it, in bytes; 0 means unknown.
func (g *slotGroups) resetPeak() (peak func() int64) {
	unknown := func() int64 { return 0 }
	switch {
	case g.memory == "":
		return unknown
	case !g.memoryUnified:
		if writeControl(g.memory, "memory.max_usage_in_bytes", "0") != nil {
			return unknown
		}
		return func() int64 { return readNumber(filepath.Join(g.memory, "memory.max_usage_in_bytes")) }
	}
	// Since Linux 6.12 writing resets the peak as this descriptor sees it.
	file, err := os.OpenFile(filepath.Join(g.memory, "memory.peak"), os.O_RDWR, 0)
	if err != nil {
		return unknown
	}
	if _, err := file.WriteString("reset"); err != nil {
		file.Close()
		return unknown
	}
	return func() int64 {
		defer file.Close()
		var text [32]byte
		n, _ := file.ReadAt(text[:], 0)
		bytes, _ := strconv.ParseInt(strings.TrimSpace(string(text[:n])), 10, 64)
		return bytes
	}
}

func readNumber(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	number, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return number
}
