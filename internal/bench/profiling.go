package bench

import "cmp"

// Profiling configures what is recorded beside the runs of a project, or of one request. Settings that a request leaves out are
// the project's; those that a project leaves out have defaults.
type Profiling struct {
	Enabled *bool `json:"enabled,omitempty" yaml:"enabled" doc:"Whether anything is recorded; left out: yes."`
	// StartOnBatch and EndAfterBatch bound the recording by the numbers of measured commands, from 1. 0 is what comes before the first.
	StartOnBatch  *int  `json:"start_on_batch,omitempty" yaml:"start_on_batch" doc:"Number of the measured command with which recording begins; left out: 0, before the first."`
	EndAfterBatch *int  `json:"end_after_batch,omitempty" yaml:"end_after_batch" doc:"Number of the last measured command that is recorded; left out: there is none."`
	SystemMetrics *bool `json:"system_metrics,omitempty" yaml:"system_metrics" doc:"Whether CPU, memory, disks, network and GPUs of the machine and the job are recorded; left out: yes."`
	Timings       *bool `json:"timings,omitempty" yaml:"timings" doc:"Whether the durations of the job's phases are recorded; left out: yes."`
}

// IsZero reports whether nothing is configured.
func (p Profiling) IsZero() bool { return p == Profiling{} }

// Or returns the configuration, with settings left out taken from others.
func (p Profiling) Or(others Profiling) Profiling {
	return Profiling{
		Enabled: cmp.Or(p.Enabled, others.Enabled), StartOnBatch: cmp.Or(p.StartOnBatch, others.StartOnBatch), EndAfterBatch: cmp.Or(p.EndAfterBatch, others.EndAfterBatch),
		SystemMetrics: cmp.Or(p.SystemMetrics, others.SystemMetrics), Timings: cmp.Or(p.Timings, others.Timings),
	}
}
