package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"
)

// startedProcess describes a running child on disk.
type startedProcess struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Started distinguishes it from a later process with the same PID.
	Started string `json:"started"`
	// Signal ends the process when it is no longer supervised.
	Signal int `json:"signal"`
}

// records keeps the file of running children.
type records struct {
	path string
	// changed is called when a child has started or, with pid 0, ended.
	changed func(name string, pid int) error
	mu      sync.Mutex
	all     map[string]startedProcess
}

func (r *records) add(p startedProcess) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[p.Name] = p
	return errors.Join(r.write(), r.changed(p.Name, p.PID))
}

func (r *records) remove(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, name)
	return errors.Join(r.write(), r.changed(name, 0))
}

func (r *records) write() error {
	return writeJSON(r.path, slices.Collect(maps.Values(r.all)))
}

// leftoverBound is the time a leftover has to end before it is killed.
const leftoverBound = 5 * time.Second

// endLeftovers ends the processes that a killed supervisor left behind. It ends a
// process only if both PID and start time are the recorded ones.
func endLeftovers(ctx context.Context, path string, log *slog.Logger) error {
	var left []startedProcess
	err := readJSON(path, &left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for processes of an earlier run: %w", err)
	}
	for _, p := range left {
		if !identity(p.PID, p.Started) {
			continue
		}
		log.Warn("ending a process of an earlier run", "process", p.Name, "pid", p.PID)
		if err := endProcess(ctx, p.PID, p.Started, syscall.Signal(p.Signal)); err != nil {
			return fmt.Errorf("ending %s of an earlier run: %w", p.Name, err)
		}
	}
	return nil
}

// identity reports whether the process with this PID is still the one that was
// started then.
func identity(pid int, started string) bool {
	now, err := startIdentity(pid)
	return err == nil && now == started
}

// endProcess ends a process that is not a child of this one, and its group.
func endProcess(ctx context.Context, pid int, started string, sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		killGroup(pid)
	} else if err := signalProcess(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling process %d: %w", pid, err)
	}
	bounded, cancel := context.WithTimeout(ctx, leftoverBound)
	defer cancel()
	if gone(bounded, pid, started) {
		return nil
	}
	killGroup(pid)
	bounded, cancel = context.WithTimeout(ctx, leftoverBound)
	defer cancel()
	if !gone(bounded, pid, started) {
		return fmt.Errorf("process %d does not end: end it by hand", pid)
	}
	return nil
}

// gone waits until the process has ended or the context has.
func gone(ctx context.Context, pid int, started string) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for identity(pid, started) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
