package workers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
)

// MachineConfig describes the resources of this machine that benchmarks may
// use.
type MachineConfig struct {
	Sandbox measure.SandboxConfig
	// Require lists counters without which the machine must not measure.
	Require []measure.Counter
	// CoLocated is set if other jobs run beside this slot's. If the slot has no CPUs of
	// its own, the CPU time of others is not a disturbance.
	CoLocated bool
	// Elsewhere is set if this process keeps off the sandbox's CPUs.
	Elsewhere bool
	// Environ is the process's own environment.
	Environ []string
	// PassEnv lists the variables in it that suites may ask for.
	PassEnv []string
	// Reserve is the room on the sandbox's file system that stays free.
	Reserve diskspace.Reserve
	Log     *slog.Logger
}

// Machine is this machine, prepared for measuring jobs.
type Machine struct {
	Jobs       jobrun.Machine
	Facts      measure.Facts
	Unenforced []measure.Unenforced
	sandbox    *measure.Sandbox
	cpus       measure.CPUList
}

// OpenMachine locks the slot, kills leftover processes in it, and probes the
// counters. It logs unenforced limits and missing counters once.
func OpenMachine(ctx context.Context, c MachineConfig) (*Machine, error) {
	support := measure.ProbeCounters()
	if err := support.Require(c.Require...); err != nil {
		return nil, err
	}
	sandbox, err := measure.NewSandbox(c.Sandbox)
	if err != nil {
		return nil, err
	}
	killed, err := sandbox.Sweep(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ending what an earlier collector left running: %w", err), sandbox.Close())
	}
	if killed > 0 {
		c.Log.WarnContext(ctx, "ended processes of an earlier collector", "processes", killed)
	}
	if err := sandbox.Clean(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("removing what an earlier collector left in %s: %w", sandbox.WorkDir(), err), sandbox.Close())
	}
	facts, err := measure.ReadFacts("/")
	if err != nil {
		return nil, errors.Join(err, sandbox.Close())
	}
	m := &Machine{Facts: facts, Unenforced: sandbox.Unenforced(), sandbox: sandbox, cpus: c.Sandbox.CPUs}
	cpus := len(c.Sandbox.CPUs)
	if cpus == 0 {
		cpus = runtime.NumCPU()
	}
	m.Facts.Isolation = isolation(c.Sandbox, m.Unenforced)
	dir := sandbox.WorkDir()
	m.Jobs = jobrun.Machine{
		Sandbox: sandbox, Counters: support, CPUs: cpus, Environ: c.Environ, PassEnv: c.PassEnv, Now: time.Now, CoLocated: c.CoLocated,
		Disk: &jobrun.Disk{
			Reserve: c.Reserve,
			Space:   func() (diskspace.Space, error) { return diskspace.Of(dir) },
			Used: func(ctx context.Context, dir string, since time.Time) (int64, error) {
				used, err := diskspace.Measure(ctx, dir, since)
				return used.Bytes, err
			},
		},
		Readings: machine.NewReader(machine.Config{
			Root: "/", CPUs: c.Sandbox.CPUs, SharedCPUs: c.CoLocated && len(c.Sandbox.CPUs) == 0, Elsewhere: c.Elsewhere, Now: time.Now,
		}),
	}
	if user := c.Sandbox.User; user != nil {
		m.Jobs.Owner = &jobrun.Owner{UID: int(user.UID), GID: int(user.GID)}
	}
	for _, u := range m.Unenforced {
		c.Log.WarnContext(ctx, "a limit cannot be enforced here; collections are marked", "limit", u.Name, "reason", u.Reason)
	}
	for _, counter := range measure.HardwareCounters() {
		if err := support[counter]; err != nil {
			c.Log.InfoContext(ctx, "a counter is not measured here", "counter", counter, "reason", err)
		}
	}
	return m, nil
}

// isolation lists what keeps commands from the rest of the machine, in alphabetical order. Results with different lists
// belong to different segments of their series.
func isolation(config measure.SandboxConfig, unenforced []measure.Unenforced) string {
	var parts []string
	for _, part := range []measure.Limit{measure.LimitFiles, measure.LimitNetwork, measure.LimitPrivileges, measure.LimitProcesses} {
		lacks := slices.ContainsFunc(unenforced, func(u measure.Unenforced) bool { return u.Name == part })
		if !lacks && !config.Isolation.Off {
			parts = append(parts, string(part))
		}
	}
	if config.User != nil {
		parts = append(parts, string(measure.LimitAccount))
	}
	if len(parts) == 0 {
		return "none"
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Programs finds the programs of profilers that can be used in the slot, before it runs jobs.
func (m *Machine) Programs(ctx context.Context) ([]probe.Tried, error) {
	return probe.Programs(ctx, m.sandbox, bench.Programs(), probe.Installed)
}

// Close releases the slot.
func (m *Machine) Close() error { return m.sandbox.Close() }

// MachineID returns the ID of a machine with its state directory, creating and
// storing it there once.
func MachineID(stateDir string) (string, error) {
	path := filepath.Join(stateDir, "machine-id")
	text, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(text))) >= 8 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the machine ID: %w", err)
	}
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("creating a machine ID: %w", err)
	}
	id := hex.EncodeToString(raw[:])
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("storing the machine ID: %w", err)
	}
	return id, nil
}
