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
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
)

// MachineConfig says what of this machine benchmarks get.
type MachineConfig struct {
	Sandbox measure.SandboxConfig
	// Require names counters without which nothing is measured here.
	Require []measure.Counter
	// Environ is the process's own environment.
	Environ []string
	Log     *slog.Logger
}

// Machine is this machine as jobs are measured on it.
type Machine struct {
	Jobs       jobrun.Machine
	Facts      measure.Facts
	Unenforced []measure.Unenforced
	sandbox    *measure.Sandbox
}

// OpenMachine takes the slot, kills what an earlier process left running in it,
// and finds out what can be measured. What cannot be enforced or counted is
// logged once.
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
		c.Log.WarnContext(ctx, "ended what an earlier collector left running", "processes", killed)
	}
	facts, err := measure.ReadFacts("/")
	if err != nil {
		return nil, errors.Join(err, sandbox.Close())
	}
	m := &Machine{Facts: facts, Unenforced: sandbox.Unenforced(), sandbox: sandbox}
	cpus := len(c.Sandbox.CPUs)
	if cpus == 0 {
		cpus = runtime.NumCPU()
	}
	m.Jobs = jobrun.Machine{Sandbox: sandbox, Counters: support, CPUs: cpus, Environ: c.Environ, Now: time.Now}
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

// Close gives the slot back.
func (m *Machine) Close() error { return m.sandbox.Close() }

// MachineID identifies a machine together with a state directory: made once,
// kept there.
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
		return "", fmt.Errorf("making a machine ID: %w", err)
	}
	id := hex.EncodeToString(raw[:])
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keeping the machine ID: %w", err)
	}
	return id, nil
}
