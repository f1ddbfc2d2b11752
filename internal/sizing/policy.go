package sizing

import (
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/store"
)

// Classes lists the size classes on which a job may run, ascending; only the pinned one
// if the job is pinned.
func Classes(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) []bench.SizeClass {
	if pinned(config, j) {
		return []bench.SizeClass{j.SizeClass}
	}
	return placement.Classes(fleet, requirements(config, j))
}

// offered lists the size classes to select from: those with a live collector that can
// run the job, since it might wait forever on others, or all if no such collector is
// live. A job that is too large for them still escalates to the largest class of all.
func offered(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) []bench.SizeClass {
	all := Classes(fleet, config, j)
	if pinned(config, j) {
		return all
	}
	awake := slices.DeleteFunc(slices.Clone(fleet), func(c placement.Collector) bool { return !c.Live })
	if live := placement.Classes(awake, requirements(config, j)); len(live) > 0 {
		return live
	}
	return all
}

// ask returns the question to the analyzer: the classes on which a job may run, and
// their memory and CPUs.
func ask(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, classes []bench.SizeClass, now time.Time) sizeclass.Question {
	return sizeclass.Question{Classes: classes, Original: original(j), Now: now, Memory: memory(fleet, config, j), CPUs: cpus(fleet, config, j)}
}

// memory returns the memory available to a job on each class, in bytes: that of the
// largest collector that can run it. A class with a collector of unknown memory is left
// out, so that it is tried.
func memory(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) map[bench.SizeClass]int64 {
	return most(placement.Fitting(fleet, requirements(config, j)), func(c placement.Collector) int64 { return c.MemoryBytes })
}

// cpus is like memory, for the number of CPUs.
func cpus(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) map[bench.SizeClass]int {
	return most(placement.Fitting(fleet, requirements(config, j)), func(c placement.Collector) int { return c.CPUs })
}

// most returns the largest amount of a resource among the collectors of each class. It
// leaves out classes with a collector whose amount is unknown (0).
func most[N int | int64](collectors plan.Fleet, has func(placement.Collector) N) map[bench.SizeClass]N {
	most := make(map[bench.SizeClass]N)
	var unknown []bench.SizeClass
	for _, c := range collectors {
		most[c.Pool.SizeClass] = max(most[c.Pool.SizeClass], has(c))
		if has(c) == 0 {
			unknown = append(unknown, c.Pool.SizeClass)
		}
	}
	for _, class := range unknown {
		delete(most, class)
	}
	return most
}

func pinned(config bench.ProjectConfig, j store.Sizing) bool {
	return j.Pinned || config.Size.Pin() != 0
}

// place returns the place where a job waits on a size class.
func place(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, class bench.SizeClass) (bench.Place, error) {
	chosen, err := placement.Choose(fleet, requirements(config, j).On(class))
	return chosen.Place, err
}

// requirements returns a job's requirements on any size class, including the pool that
// its benchmark set binds it to.
func requirements(config bench.ProjectConfig, j store.Sizing) placement.Requirements {
	return j.Requirements().In(boundPool(config, j))
}

// boundPool names the pool to which a job's benchmark set is bound; empty: none.
func boundPool(config bench.ProjectConfig, j store.Sizing) string {
	if j.Command != nil {
		return ""
	}
	return plan.BoundPool(config, j.Target, j.TestCases)
}

// Standing returns a job's size class and the next larger one after a failure.
func Standing(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) retry.Standing {
	at := retry.Standing{Class: j.SizeClass}
	if pinned(config, j) {
		return at
	}
	if next, larger := sizeclass.Next(Classes(fleet, config, j), j.SizeClass, config.Size.Stepwise); larger {
		at.Next = next
	}
	return at
}

// Attempts returns a project's retry policy.
func Attempts(config bench.ProjectConfig) retry.Policy {
	return retry.Policy{MaxJobFails: config.Fails()}
}

const (
	// beyond is added to a command's own time limits for its whole run.
	beyond = time.Minute
	// suiteTimeout bounds a suite's job, which also has its own limits.
	suiteTimeout = plan.MaxJobTime
)

// original returns a job's time limit independent of its size class.
func original(j store.Sizing) time.Duration {
	if j.Command == nil || j.Command.TimeoutSeconds <= 0 {
		return suiteTimeout
	}
	return min(suiteTimeout, time.Duration(j.Command.TimeoutSeconds)*time.Second*time.Duration(max(1, j.Command.Iterations))+beyond)
}
