package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ProjectConfig is the configuration of a project, as operators apply it.
type ProjectConfig struct {
	Description string `json:"description,omitempty" yaml:"description" doc:"What the project is, in a sentence."`
	// Targets are measured by default; empty: the suite's targets that have a registered
	// collector.
	Targets []Target `json:"targets,omitempty" yaml:"targets" doc:"Targets measured by default; empty: those of the suite that have a collector."`
	// Artifacts overrides the suite's source of artifacts.
	Artifacts ArtifactSource `json:"artifacts,omitzero" yaml:"artifacts"`
	// Source is the source of its commits.
	Source CommitSource `json:"source,omitzero" yaml:"source"`
	Queue  QueuePolicy  `json:"queue,omitzero" yaml:"queue"`
	Size   SizePolicy   `json:"size,omitzero" yaml:"size"`
	// OptionalTargets are measured, but neither a request nor its descendants wait for
	// them.
	OptionalTargets []Target `json:"optional_targets,omitempty" yaml:"optional_targets" doc:"Targets that are measured too, but that no request waits for."`
	// Verify is read by [ProjectConfig.VerifyMode].
	Verify VerifyMode `json:"verify,omitempty" yaml:"verify" enum:"off,suspects,all" doc:"What is measured again, in turns with the baseline, until there is a verdict; empty: suspects."`
	// VerifyBudget is read by [ProjectConfig.VerifyTime].
	VerifyBudget string `json:"verify_budget,omitempty" yaml:"verify_budget" doc:"Machine time that measuring again may add to a request, as a share of its own, such as 25%, but at least verify_at_least. Empty: 25%."`
	// VerifyAtLeast is read by [ProjectConfig.VerifyTime].
	VerifyAtLeast string `json:"verify_at_least,omitempty" yaml:"verify_at_least" doc:"Machine time that measuring again may take whatever the share, such as 4m. Empty: 10m."`
	// MaxJobFails is the number of attempts of a failing job; left out: [MaxJobFails].
	MaxJobFails AttemptCount `json:"max_job_fails,omitempty" yaml:"max_job_fails" minimum:"1" maximum:"20" doc:"Attempts of a failing job; left out: 3."`
	// FailoverAfter is read by [ProjectConfig.Failover].
	FailoverAfter string `json:"failover_after,omitempty" yaml:"failover_after" doc:"How long a pool may be without a live collector before jobs that wait for it move to another, such as 5m, or never; empty: 5m."`
	// Constraints narrow where its jobs run, builds included.
	Constraints ConstraintSpec `json:"constraints,omitzero" yaml:"constraints" doc:"Where the project's jobs may run."`
	// AffinityWait is read by [ProjectConfig.Affinity].
	AffinityWait string `json:"affinity_wait,omitempty" yaml:"affinity_wait" doc:"How long a job waits for collectors that have its cache directories, such as 30s, or never; empty: 30s."`
	// BenchmarkSets bind benchmarks to pools; empty: all may run on any suitable pool.
	BenchmarkSets []BenchmarkSet `json:"benchmark_sets,omitempty" yaml:"benchmark_sets" doc:"Which benchmarks are measured on which pool; empty: all wherever they can run."`
	// Profiling says what is recorded beside its runs.
	Profiling Profiling `json:"profiling,omitzero" yaml:"profiling" doc:"What is recorded beside runs, of the machine and the job; left out: everything."`
	// Keep is read by [ProjectConfig.Retention].
	Keep map[string]string `json:"keep,omitempty" yaml:"keep" doc:"How long what the project leaves is kept, such as {try: 90d, output: forever}; left out: as for all projects."`
}

// ArtifactSource overrides a suite's artifact provider.
type ArtifactSource struct {
	Provider   string            `json:"provider,omitempty" yaml:"provider" doc:"go-toolchain, goroot, rustup, directory, url or build; empty: the suite's."`
	Parameters map[string]string `json:"parameters,omitempty" yaml:"parameters"`
	// Tags overrides single artifacts, by tag.
	Tags map[string]TagSource `json:"tags,omitempty" yaml:"tags" doc:"Where single artifacts come from, by tag."`
}

// TagSource is the source of a single artifact.
type TagSource struct {
	Provider   string            `json:"provider" yaml:"provider"`
	Parameters map[string]string `json:"parameters,omitempty" yaml:"parameters"`
}

// For returns the provider and parameters for a tag: its own, else the project's, else
// the suite's, which are passed in.
func (s ArtifactSource) For(tag, provider string, parameters map[string]string) (string, map[string]string) {
	if own, ok := s.Tags[tag]; ok {
		return own.Provider, own.Parameters
	}
	if s.Provider != "" {
		return s.Provider, s.Parameters
	}
	return provider, parameters
}

// QueuePolicy configures a project's admission and its queue.
type QueuePolicy struct {
	Policy string `json:"policy,omitempty" yaml:"policy" enum:"spec,upstream" doc:"Order of requests; empty: spec."`
	// MaxInProgress is the number of tracked requests that run at once; left out: 1.
	MaxInProgress SlotCount `json:"max_in_progress,omitempty" yaml:"max_in_progress" minimum:"1" maximum:"100" doc:"Tracked requests that run at once; left out: 1."`
	// Supersede ends a waiting try build when a newer one of its pull request is
	// submitted.
	Supersede bool `json:"supersede,omitempty" yaml:"supersede" doc:"A newer try build of a pull request ends those that still wait."`
	// Queue is the queue of its releases, commits and try builds; empty: project:NAME.
	Queue string `json:"queue,omitempty" yaml:"queue" doc:"Queue of its tracked requests' jobs; empty: its own."`
	// ArtifactsHours bounds a try build's wait for its artifacts; 0: two weeks.
	ArtifactsHours int `json:"artifacts_hours,omitempty" yaml:"artifacts_hours" minimum:"0" maximum:"8760" doc:"Hours after which a try build without artifacts expires; 0: 336."`
}

// ArtifactsWithin returns how long a request waits for its artifacts before it expires.
func (p QueuePolicy) ArtifactsWithin() time.Duration {
	if p.ArtifactsHours == 0 {
		return 14 * 24 * time.Hour
	}
	return time.Duration(p.ArtifactsHours) * time.Hour
}

// SlotCount is a number of requests that may run at once, 1 to 100. The zero value
// means that it was left out. An explicit 0 is refused: it would stop the project.
type SlotCount int

func (n SlotCount) check() error {
	if n < 1 || n > 100 {
		return invalid("max_in_progress", fmt.Sprint(int(n)), "use 1 to 100, or leave it out for 1")
	}
	return nil
}

// AttemptCount is the number of attempts of a failing job, 1 to 20. The zero value
// means that it was left out. An explicit 0 is refused.
type AttemptCount int

func (n AttemptCount) check() error {
	if n < 1 || n > 20 {
		return invalid("max_job_fails", fmt.Sprint(int(n)), "use 1 to 20, or leave it out for 3")
	}
	return nil
}

// UnmarshalYAML reads a written number.
func (n *AttemptCount) UnmarshalYAML(read func(any) error) error {
	var written int
	if err := read(&written); err != nil {
		return err
	}
	*n = AttemptCount(written)
	return n.check()
}

// UnmarshalJSON reads a written number.
func (n *AttemptCount) UnmarshalJSON(text []byte) error {
	var written *int
	if err := json.Unmarshal(text, &written); err != nil || written == nil {
		return err
	}
	*n = AttemptCount(*written)
	return n.check()
}

// UnmarshalYAML reads a written number.
func (n *SlotCount) UnmarshalYAML(read func(any) error) error {
	var written int
	if err := read(&written); err != nil {
		return err
	}
	*n = SlotCount(written)
	return n.check()
}

// UnmarshalJSON reads a written number.
func (n *SlotCount) UnmarshalJSON(text []byte) error {
	var written *int
	if err := json.Unmarshal(text, &written); err != nil || written == nil {
		return err
	}
	*n = SlotCount(*written)
	return n.check()
}

// Check refuses an invalid configuration.
func (c ProjectConfig) Check() error {
	for _, t := range slices.Concat(c.Targets, c.OptionalTargets) {
		if _, err := ParseTarget(string(t)); err != nil {
			return err
		}
	}
	for tag := range c.Artifacts.Tags {
		if err := CheckTag(tag); err != nil {
			return err
		}
	}
	if err := c.Source.Check(); err != nil {
		return err
	}
	if err := c.Artifacts.checkBuild(); err != nil {
		return err
	}
	switch c.Queue.Policy {
	case "", "spec", "upstream":
	default:
		return invalid("queue policy", c.Queue.Policy, "use spec or upstream")
	}
	if c.Queue.MaxInProgress != 0 {
		if err := c.Queue.MaxInProgress.check(); err != nil {
			return err
		}
	}
	if c.Queue.ArtifactsHours < 0 || c.Queue.ArtifactsHours > 8760 {
		return invalid("artifacts_hours", fmt.Sprint(c.Queue.ArtifactsHours), "use 1 to 8760, or leave it out for 336")
	}
	if c.Queue.Queue != "" {
		if err := CheckQueue(c.Queue.Queue); err != nil {
			return err
		}
	}
	if c.MaxJobFails != 0 {
		if err := c.MaxJobFails.check(); err != nil {
			return err
		}
	}
	if err := c.checkFailover(); err != nil {
		return err
	}
	if err := c.checkVerify(); err != nil {
		return err
	}
	if err := c.checkBenchmarkSets(); err != nil {
		return err
	}
	if err := c.checkPlacement(); err != nil {
		return err
	}
	if err := c.checkKeep(); err != nil {
		return err
	}
	return c.Size.check()
}

// Slots returns the number of tracked requests that may run at once.
func (c ProjectConfig) Slots() int { return max(1, int(c.Queue.MaxInProgress)) }

// Fails returns the number of attempts of a failing job.
func (c ProjectConfig) Fails() int {
	if c.MaxJobFails == 0 {
		return MaxJobFails
	}
	return int(c.MaxJobFails)
}

// ReadProjectConfig reads a stored configuration.
func ReadProjectConfig(text []byte) (ProjectConfig, error) {
	var c ProjectConfig
	if len(text) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		if errors.Is(err, ErrInvalid) {
			return c, fmt.Errorf("project configuration: %w", err)
		}
		return c, fmt.Errorf("%w: project configuration: %w", ErrInvalid, err)
	}
	return c, c.Check()
}
