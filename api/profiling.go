package api

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// profilingSettings returns how runs are recorded: as configured, with defaults for everything left out. The error says what is
// impossible.
func profilingSettings(p bench.Profiling) (profiler.Settings, error) {
	s := profiler.Settings{Enabled: orTrue(p.Enabled), EndAfterBatch: p.EndAfterBatch, SystemMetrics: orTrue(p.SystemMetrics), Timings: orTrue(p.Timings)}
	if p.StartOnBatch != nil {
		s.StartOnBatch = *p.StartOnBatch
	}
	if err := s.Check(); err != nil {
		return s, invalid("%v", err)
	}
	return s, nil
}

func orTrue(value *bool) bool { return value == nil || *value }

// checkProfiling refuses recording that a request cannot have within the project's configuration.
func checkProfiling(own bench.Profiling, project bench.ProjectConfig) error {
	_, err := profilingSettings(own.Or(project.Profiling))
	return err
}

// profilingOf returns how a run is recorded; nil: not at all. A project that has been configured since its request was submitted may
// make the request's window impossible: then the project's applies.
func profilingOf(own *bench.Profiling, project bench.ProjectConfig) *profiler.Settings {
	configured := project.Profiling
	if own != nil && checkProfiling(*own, project) == nil {
		configured = own.Or(configured)
	}
	s, err := profilingSettings(configured)
	if err != nil || !s.Enabled || !s.SystemMetrics && !s.Timings {
		return nil
	}
	return &s
}

// givenProfiling returns nil for a request that asks for nothing of its own.
func givenProfiling(p bench.Profiling) *bench.Profiling {
	if p.IsZero() {
		return nil
	}
	return &p
}

func shownProfiling(p *bench.Profiling) bench.Profiling {
	if p == nil {
		return bench.Profiling{}
	}
	return *p
}
