package profiler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// Interval is the time between two samples: a mean over seconds would hide moments of saturation.
	Interval = 100 * time.Millisecond
	// FlushInterval is the time between two uploads.
	FlushInterval = 10 * time.Second
	// MaxActive is the longest time for which an agent is active. It bounds what a run adds to the store, together with
	// MaxValues. It is a multiple of FlushInterval, so that the last batch is a full one.
	MaxActive = 5 * time.Minute
	// MaxValues is the largest number of values of one series of an attempt.
	MaxValues = int(MaxActive / Interval)
	// MaxSystemSeries and MaxTimingSeries bound the number of series of an attempt. A machine has some twenty, one for each CPU of the job, and
	// two for each GPU and network interface.
	MaxSystemSeries = 512
	MaxTimingSeries = 32
	// MaxNameBytes is the longest name of a phase or a device.
	MaxNameBytes = 100
	// MaxHostBytes is the longest name of a machine, MaxReasonBytes the longest reason why a metric is absent.
	MaxHostBytes   = 255
	MaxReasonBytes = 500
	// MaxBatches is the largest number of batches of one series of an attempt: flushing is never more than twice as frequent as it should be.
	MaxBatches = 2 * int(MaxActive/FlushInterval)
	// EndWithin is the longest time that [Agent.End] takes, whatever hangs.
	EndWithin = time.Second
)

// Settings of profiling, as a project or a request gives them.
type Settings struct {
	Enabled bool `json:"enabled"`
	// StartOnBatch is the first batch index at which the agent is active, EndAfterBatch the last one; nil for no end.
	StartOnBatch  int  `json:"start_on_batch,omitempty"`
	EndAfterBatch *int `json:"end_after_batch,omitempty"`
	// SystemMetrics and Timings are the kinds of series that are recorded.
	SystemMetrics bool `json:"system_metrics"`
	Timings       bool `json:"timings"`
}

// Check refuses a window that is negative or ends before it starts.
func (s Settings) Check() error {
	switch {
	case s.StartOnBatch < 0:
		return fmt.Errorf("profiling: start_on_batch is %d; batches count from 0", s.StartOnBatch)
	case s.EndAfterBatch != nil && *s.EndAfterBatch < s.StartOnBatch:
		return fmt.Errorf("profiling: end_after_batch %d is before start_on_batch %d", *s.EndAfterBatch, s.StartOnBatch)
	}
	return nil
}

// Config describes an agent.
type Config struct {
	Settings
	// LocalRank and GlobalRank number the processes of a job: those on this machine, and all of them. The first process of a machine
	// records system metrics, the first of all records timings. A job of one process has 0 for both.
	LocalRank, GlobalRank int
	// Attempt identifies this attempt at the run: other attempts have other series. Host is the machine.
	Attempt, Host string
	// Job are the collectors of the job's control group.
	Job []Collector
	// Machine has the collectors of the whole machine. They collect while Lock is held, which agents on the same host share.
	Machine []Collector
	Lock    HostLock
	// Sender takes uploads.
	Sender Sender
	Log    *slog.Logger
	// Now is the clock. Its monotonic reading measures time.
	Now func() time.Time
	// Alarm returns the alarm of the pauses between samples, [NewAlarm] outside of tests; nil for a timer of Go.
	Alarm func() Alarm
}

func (c Config) alarm() Alarm {
	if c.Alarm == nil {
		return newTimerAlarm()
	}
	return c.Alarm()
}

// complete refuses a configuration that lacks what an enabled agent needs.
func (c Config) complete() error {
	switch {
	case c.Sender == nil || c.Log == nil || c.Now == nil:
		return errors.New("profiler: a sender, a log and a clock are required")
	case c.Attempt == "":
		return errors.New("profiler: an attempt is required, since series of two attempts must not mix")
	case len(c.Machine) > 0 && c.Lock == nil:
		return errors.New("profiler: a lock is required, since one agent of a host records the machine")
	}
	return nil
}

// systemMetrics and timings are the enabled kinds of series. They never change.
func (c Config) systemMetrics() bool { return c.Enabled && c.SystemMetrics && c.LocalRank == 0 }

func (c Config) timings() bool { return c.Enabled && c.Timings && c.GlobalRank == 0 }

// Collector reads system metrics from one source. The agent calls it from one goroutine.
type Collector interface {
	// Name tells people what is read.
	Name() string
	// Collect reads the source. It does not wait for anything. Its result is valid until the next call. The context is the agent's
	// and ends what Collect starts.
	Collect(ctx context.Context) (Collected, error)
	// Close ends what Collect has started. It is called once, even if Collect was not.
	Close() error
}

// Collected holds the readings of a source at one moment.
type Collected struct {
	Values []Value
	// Absent tells why the source lacks a metric.
	Absent map[Metric]string
}

// Value is one reading of a metric.
type Value struct {
	Metric Metric
	// Device is as in [Series].
	Device string
	Value  float64
	// Counter is set if the value is a total that only grows. The series has its growth per second.
	Counter bool
}

// HostLock is held by at most one agent of a host, and is free again when its process ends. *flock.Flock implements it.
type HostLock interface {
	// TryLock takes the lock unless another agent holds it. It does not wait.
	TryLock() (bool, error)
	Unlock() error
}

// Sender delivers uploads to their store.
type Sender interface {
	// Send delivers an upload and returns nil once it is stored. It ends when the context does. The error is [ErrRefused] if
	// sending this upload again is in vain, and [ErrNoReceiver] if sending any is; after any other error, the same upload may be
	// sent a second time and must then be stored once.
	Send(ctx context.Context, u Upload) error
}

// ErrRefused is the error of an upload that the receiver refused for good.
var ErrRefused = errors.New("the receiver refused the upload")

// ErrNoReceiver is an [ErrRefused] of a receiver that takes no uploads at all: no other one is sent.
var ErrNoReceiver = fmt.Errorf("%w, and takes none", ErrRefused)
