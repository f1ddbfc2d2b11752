package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// Conversions from the types of the record to those of the API.

func requestOf(r bench.Request) apiclient.Request {
	return apiclient.Request{
		ID: r.ID, Project: r.Project, Type: r.Type, Tag: r.Tag, Parent: r.Parent, PR: r.PR, WaitsFor: r.WaitsFor,
		ParentNote: r.ParentNote, Status: r.Status, Outcome: r.Outcome,
		Submitter: r.Submitter, Queue: r.Queue, Branch: r.Branch, Selection: r.Selection, Versus: r.Versus, Profiler: r.Profiler, Command: shownCommand(r.Command), Batch: r.Batch, CommitDate: r.CommitDate,
		CreatedAt: r.CreatedAt, AdmittedAt: r.AdmittedAt, JobsDoneAt: r.JobsDoneAt, EndedAt: r.CompletedAt,
		Baseline: r.Baseline, Verdicts: verdictsOf(r.Summary), Message: r.Message, WorkflowID: r.Ref().WorkflowID(),
		Constraints: constraintsOf(r.Constraints), Profiling: shownProfiling(r.Profiling), Template: templateOf(r),
	}
}

func templateOf(r bench.Request) *apiclient.TemplateCall {
	if r.Template == nil {
		return nil
	}
	t := apiclient.TemplateCall(*r.Template)
	return &t
}

// verdictsOf returns the sentence that sums up a request's comparison; empty if there is none.
func verdictsOf(summary json.RawMessage) string {
	var s struct {
		Line string `json:"line"`
	}
	if json.Unmarshal(summary, &s) != nil {
		return "" // a summary of an earlier version has other fields, and none is empty
	}
	return s.Line
}

// hidden stands for the values of a command's environment, which may be secrets.
const hidden = "(hidden)"

// shownCommand is a command as everybody may read it. Only the run of its job gets its
// environment.
func shownCommand(c *bench.Command) *apiclient.Command {
	out := commandOf(c)
	if out == nil || len(out.Env) == 0 {
		return out
	}
	out.Env = make(map[string]string, len(c.Env))
	for name := range c.Env {
		out.Env[name] = hidden
	}
	return out
}

func commandOf(c *bench.Command) *apiclient.Command {
	if c == nil {
		return nil
	}
	return &apiclient.Command{Argv: c.Argv, Env: c.Env, TimeoutSeconds: c.TimeoutSeconds, Iterations: c.Iterations}
}

// scriptOf returns the script of a command's job; nil: it has none.
func scriptOf(c *bench.Command) *bench.Script {
	if c == nil {
		return nil
	}
	return c.Script
}

func jobOf(j bench.Job) apiclient.Job {
	var argv []string
	if j.Command != nil {
		argv = j.Command.Argv
	}
	return apiclient.Job{
		Key: j.Key, Name: j.Name, Place: j.Line, Command: argv, Project: j.Project, Tag: j.Tag, Versus: j.Versus, Profiler: j.Profiler, Kind: j.Kind, Target: j.Target, Backend: j.Backend, Profile: j.Profile,
		TestCases: notNil(j.TestCases), Done: j.Done, SizeClass: j.SizeClass, SizeReason: j.SelectedWhy, Pool: j.Pool, TaskQueue: j.TaskQueue, Queue: j.Queue,
		Generation: j.Generation, Status: j.Status, Message: j.Message, MovedFrom: j.MovedFrom, MovedAt: j.MovedAt, CreatedAt: j.CreatedAt, StartedAt: j.StartedAt, EndedAt: j.CompletedAt,
		WorkflowID: j.Ref().WorkflowID(), Constraints: constraintsOf(j.Constraints), Canary: j.IsCanary(),
	}
}

func constraintsOf(c *bench.Constraints) bench.ConstraintSpec {
	if c == nil {
		return bench.ConstraintSpec{}
	}
	return c.Spec()
}

func runOf(r bench.Run) (apiclient.Run, error) {
	out := apiclient.Run{
		ID: r.ID, Job: r.Job, Number: r.Number, Reason: r.Reason, AskedBy: r.AskedBy, Collector: r.Collector, Pool: r.Pool, SizeClass: r.SizeClass,
		CoLocated: r.CoLocated, Outcome: r.Outcome, Message: r.Message, OutputTail: r.OutputTail,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		TimeoutSeconds: r.TimeoutSeconds, Probe: r.Probe, Seconds: r.MeasuredSeconds, PeakMemory: r.PeakMemory, CPUSeconds: r.CPUSeconds,
	}
	if len(r.Progress) > 0 {
		if err := json.Unmarshal(r.Progress, &out.Progress); err != nil {
			return out, fmt.Errorf("reading the progress of run %s: %w", r.ID, err)
		}
	}
	return out, nil
}

func runsOf(runs []bench.Run) ([]apiclient.Run, error) {
	out := make([]apiclient.Run, 0, len(runs))
	for _, r := range runs {
		run, err := runOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, run)
	}
	return out, nil
}

func runErrorOf(e bench.RunError) apiclient.RunError {
	return apiclient.RunError{Run: e.Run, TestCase: e.TestCase, Kind: e.Kind, Message: e.Message, OutputTail: e.OutputTail, CreatedAt: e.CreatedAt}
}

func collectorOf(c bench.Collector, now time.Time, offlineAfter time.Duration) (apiclient.Collector, error) {
	out := apiclient.Collector{
		Name: c.Name, Target: c.Target, SizeClass: c.SizeClass, Pool: c.Pool, State: c.State(now, offlineAfter),
		Version: c.Version, Epoch: c.Epoch, HardwareID: c.HardwareID, CoLocated: c.CoLocated, Facts: c.Facts,
		CurrentRun: c.CurrentRun, RegisteredAt: c.RegisteredAt, LastHeartbeat: c.LastHeartbeat,
		Labels: c.Labels, BenchmarkSets: c.BenchmarkSets, WantedVersion: c.WantedVersion,
		MachineType: c.MachineType, MachineGroup: c.MachineGroup, Devices: c.Devices, MemoryBytes: c.MemoryBytes, CPUs: c.CPUs,
		CacheDirs: c.CacheDirs, Host: c.Host, DisturbedBy: c.DisturbedBy, SetAsideAt: c.SetAsideAt, Stuck: c.Stuck, CanaryFailed: c.CanaryFailed,
	}
	if len(c.Unenforced) > 0 {
		if err := json.Unmarshal(c.Unenforced, &out.Unenforced); err != nil {
			return out, fmt.Errorf("reading the limits of collector %s: %w", c.Name, err)
		}
	}
	return out, nil
}
