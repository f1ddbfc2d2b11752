package bench

import (
	"cmp"
	"fmt"
	"time"
)

// NewSuiteJob returns a job that measures test cases of a suite. It has no key,
// location or turn yet.
func NewSuiteJob(project string, w Work) (Job, error) {
	if w.Kind != KindCompileTime && w.Kind != KindRuntime {
		return Job{}, invalid("job kind", string(w.Kind), "a suite's jobs are of kind compiletime or runtime")
	}
	return newJob(Job{Project: project, Work: w})
}

// NewBuildJob returns a job that builds an artifact. It has no key, location or turn
// yet.
func NewBuildJob(project string, spec BuildSpec, generation int) (Job, error) {
	return newJob(Job{Project: project, Generation: generation, Work: Work{
		Kind: KindBuild, Target: spec.Target, Tag: spec.Tag, TestCases: []TestCase{}, Build: &spec,
	}})
}

// CommandBenchmark is the benchmark name of a command's single test case.
const CommandBenchmark = "command"

// NewCommandJob returns a job that runs a command. Its line is 0 for a request's only
// command and counts from 1 in a batch. The name may be empty. The job has no key,
// location or turn yet.
func NewCommandJob(project string, c Command, target Target, line int, name string) (Job, error) {
	return newJob(Job{Project: project, Work: Work{
		Kind: KindCommand, Target: target, TestCases: []TestCase{{Benchmark: CommandBenchmark, Target: target}},
		Iterations: c.Iterations, Command: &c, Line: line, Name: name,
	}})
}

// NewProfileJob returns a job that runs a test case of an artifact once under a profiler.
// It has no key, location or turn yet.
func NewProfileJob(project, tag, suiteHash string, tc TestCase, profiler string) (Job, error) {
	return newJob(Job{Project: project, Work: Work{
		Kind: KindProfile, Target: tc.Target, Tag: tag, Backend: tc.Backend, Profile: tc.Profile,
		SuiteHash: suiteHash, TestCases: []TestCase{tc}, Iterations: 1, Profiler: profiler,
	}})
}

func newJob(j Job) (Job, error) {
	j.Status = JobQueued
	if err := j.checkWork(); err != nil {
		return Job{}, err
	}
	return j, nil
}

// Validate refuses a job that its kind's constructor would refuse, or that is not
// ready to be recorded because it lacks a key, a location or a turn.
func (j Job) Validate() error {
	if err := j.check(); err != nil {
		return fmt.Errorf("job %s: %w", j.Key, err)
	}
	return nil
}

func (j Job) check() error {
	if err := j.checkWork(); err != nil {
		return err
	}
	switch j.Status {
	case JobQueued, JobHandedOut, JobInProgress, JobSuccess, JobFailure, JobCancelled:
	default:
		return invalid("job status", string(j.Status), "use queued, handed_out, in_progress, success, failure or cancelled")
	}
	switch {
	case j.Key == "":
		return invalid("job", "", "it has no key")
	case j.SizeClass < 1 || j.Pool == "" || j.TaskQueue == "":
		return invalid("job", string(j.Key), "it has no size class, no pool or no task queue")
	case j.Queue == "":
		return invalid("job", string(j.Key), "it is in no queue")
	case j.Status.Open() != (j.CompletedAt == nil):
		return invalid("job status", string(j.Status), "a job has an end time if and only if it has ended")
	}
	return nil
}

// checkWork refuses fields that the kind of job cannot have.
func (j Job) checkWork() error {
	switch {
	case j.Project == "":
		return invalid("job", string(j.Key), "it belongs to no project")
	case j.Target == "":
		return invalid("job", string(j.Key), "it has no target")
	case j.Iterations < 0:
		return invalid("iterations", fmt.Sprint(j.Iterations), "use a positive number")
	case j.Generation < 0:
		return invalid("generation", fmt.Sprint(j.Generation), "the first is 0")
	}
	for _, tc := range j.TestCases {
		if tc.Benchmark == "" || tc.Target != j.Target {
			return invalid("test case", tc.String(), "a job's test cases are of its target, "+string(j.Target))
		}
	}
	if j.Profiler != "" && j.Kind != KindProfile {
		return invalid("profiler", j.Profiler, "a job of kind "+string(j.Kind)+" runs without one")
	}
	switch j.Kind {
	case KindCompileTime, KindRuntime:
		return j.Work.checkSuite()
	case KindBuild:
		return j.Work.checkBuild()
	case KindProfile:
		return j.Work.checkProfile()
	case KindCommand:
		return j.Work.checkCommand()
	}
	_, err := ParseJobKind(string(j.Kind))
	return cmp.Or(err, invalid("job kind", string(j.Kind), "write it in lower case"))
}

func (w Work) checkSuite() error {
	switch {
	case w.Command != nil || w.Build != nil || w.Line != 0:
		return invalid("job kind", string(w.Kind), "it measures a suite: it has no command, build or line")
	case w.Tag == "":
		return invalid("tag", "", "the job measures no artifact")
	case w.Versus == w.Tag:
		return invalid("versus", w.Versus, "an artifact cannot be measured in turns with itself")
	case w.SuiteHash == "":
		return invalid("suite", "", "the job measures no suite")
	case len(w.TestCases) == 0 && w.Chunk == 0: // others may measure all that a chunk would have
		return invalid("test cases", "", "the job has none")
	}
	return nil
}

func (w Work) checkProfile() error {
	switch {
	case w.Profiler == "":
		return invalid("profiler", "", "the job names none")
	case len(w.TestCases) != 1 || w.Iterations != 1:
		return invalid("test cases", fmt.Sprint(len(w.TestCases)), "a profile is of one iteration of one test case")
	case w.Versus != "":
		return invalid("versus", w.Versus, "each artifact is profiled by a job of its own")
	}
	if err := CheckParameter("profiler", w.Profiler); err != nil {
		return err
	}
	return w.checkSuite()
}

func (w Work) checkBuild() error {
	switch {
	case w.Build == nil:
		return invalid("job kind", string(w.Kind), "it does not say what is built")
	case w.Build.Target != w.Target:
		return invalid("target", string(w.Build.Target), "the build is for another target than its job")
	case w.Tag == "":
		return invalid("tag", "", "the build names no artifact")
	case w.Command != nil || w.Line != 0 || w.Name != "" || w.Versus != "" || w.SuiteHash != "" || len(w.TestCases) > 0:
		return invalid("job kind", string(w.Kind), "it builds: it has no command, line, name, suite, test cases or versus")
	}
	return nil
}

func (w Work) checkCommand() error {
	switch {
	case w.Command == nil || len(w.Command.Argv) == 0:
		return invalid("command", "", "the job has no command line")
	case len(w.TestCases) != 1 || w.TestCases[0] != TestCase{Benchmark: w.TestCases[0].Benchmark, Target: w.Target}:
		return invalid("test cases", fmt.Sprint(len(w.TestCases)), "a command has one test case, without parameters")
	case w.Line < 0:
		return invalid("line", fmt.Sprint(w.Line), "the lines of a batch count from 1")
	case w.Build != nil || w.Tag != "" || w.Versus != "" || w.SuiteHash != "" || w.Backend != "" || w.Profile != "":
		return invalid("job kind", string(w.Kind), "it runs a command: it has no build, artifact, suite, backend or profile")
	}
	return nil
}

// PlannedJob is a job to be recorded, with fields that the record keeps in another
// form.
type PlannedJob struct {
	Job
	// Set names the collectors that may take the job; empty: all of its pool. The
	// record keeps the set by its task queue.
	Set []string
	// AffinityFor bounds the wait for a collector with the job's caches, from the
	// moment of recording; 0: no wait. The record keeps its end, AffinityUntil.
	AffinityFor time.Duration
	// ChunkSet is shared by the chunks of one job, of which there are at least ChunkMin
	// and at most ChunkOf; empty: the job is not divided.
	ChunkSet          JobKey
	ChunkMin, ChunkOf int
	// Again counts the further times that the job runs, one after the other.
	Again int
}

// At returns the place where the job will wait.
func (j PlannedJob) At() Place {
	return Place{Pool: Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, Set: j.Set}
}

// PutAt sets the place where the job will wait.
func (j *PlannedJob) PutAt(p Place) {
	j.Target, j.SizeClass, j.Pool, j.Set, j.TaskQueue = p.Target, p.SizeClass, p.Name, p.Set, p.TaskQueue()
}

// Validate refuses a job that cannot be recorded.
func (j PlannedJob) Validate() error {
	switch err := j.Job.Validate(); {
	case err != nil:
		return err
	case j.Status != JobQueued:
		return invalid("job status", string(j.Status), "a job begins as queued")
	case j.TaskQueue != j.At().TaskQueue():
		return invalid("task queue", j.TaskQueue, "it does not belong to the job's pool or set of collectors")
	case j.AffinityFor < 0:
		return invalid("affinity", j.AffinityFor.String(), "use a positive duration")
	}
	return nil
}
