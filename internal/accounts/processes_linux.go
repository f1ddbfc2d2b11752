package accounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepEvery is the pause between two looks for processes, which may start others while they are being killed.
const sweepEvery = 5 * time.Millisecond

// EndProcesses kills all processes of the account, which a lease of it makes the caller's own, and waits until there is none.
// It returns the number of processes seen.
func (l *Lease) EndProcesses(ctx context.Context) (killed int, err error) {
	seen := make(map[int]bool)
	for {
		pids, err := processesOf(l.UID)
		if err != nil || len(pids) == 0 {
			return len(seen), err
		}
		for _, pid := range pids {
			seen[pid] = true
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return len(seen), fmt.Errorf("killing process %d of account %s: %w", pid, l.Name, err)
			}
		}
		select {
		case <-ctx.Done():
			return len(seen), fmt.Errorf("processes of account %s survive being killed, such as %d: %w", l.Name, pids[0], context.Cause(ctx))
		case <-time.After(sweepEvery):
		}
	}
}

// processesOf returns the processes with a user ID that are not dead.
func processesOf(uid uint32) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	want := strconv.FormatUint(uint64(uid), 10)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading process %d: %w", pid, err)
		}
		dead, owner := false, ""
		for line := range strings.Lines(string(text)) {
			switch name, value, _ := strings.Cut(line, ":"); name {
			case "State":
				state := strings.TrimSpace(value)
				dead = strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
			case "Uid":
				owner, _, _ = strings.Cut(strings.TrimSpace(value), "\t") // the real one; the effective one may be another's
			}
		}
		if owner == want && !dead {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
