package sizing

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/store"
)

// Policy is what a project's configuration says about sizes, with the recommended
// value for what it leaves out. What cannot be meant is refused, naming the field.
func Policy(p bench.SizePolicy) (sizeclass.Policy, error) {
	written := map[string]any{"stepwise": p.Stepwise}
	for name, text := range map[string]string{
		"minimum": p.Minimum, "failure_cache": p.FailureCache, "probe_expiry": p.ProbeExpiry,
		"maximum_timeout": p.MaximumTimeout, "default_timeout": p.DefaultTimeout,
	} {
		if text != "" {
			written[name] = text
		}
	}
	for name, number := range map[string]*float64{"exponent": p.Exponent, "timeout_multiplier": p.TimeoutMultiplier, "probe_budget": p.ProbeBudget} {
		if number != nil {
			written[name] = *number
		}
	}
	for name, number := range map[string]*int{"history": p.History, "recheck": p.Recheck} {
		if number != nil {
			written[name] = *number
		}
	}
	text, err := json.Marshal(written)
	if err != nil {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: %w", bench.ErrInvalid, err)
	}
	policy, err := sizeclass.ReadPolicy(text)
	if err != nil {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: %w", bench.ErrInvalid, err)
	}
	if time.Duration(policy.MaximumTimeout) > suiteTimeout {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: maximum_timeout %s: use at most %s, for no job runs longer", bench.ErrInvalid, policy.MaximumTimeout, suiteTimeout)
	}
	return policy, nil
}

// Classes are the size classes on which a job may run, ascending. Of one whose class
// a person has chosen it is that one only.
func Classes(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) []bench.SizeClass {
	if pinned(config, j) {
		return []bench.SizeClass{j.SizeClass}
	}
	return placement.Classes(fleet, requirements(config, j))
}

// offered are the size classes from which that of a job is selected: where one has a
// live collector that can run it, those that have. Others would let it wait for
// nobody. What is too small for them goes to the largest of all the same.
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

// ask is the question on which classes of a fleet a job may run, and what they have.
func ask(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, classes []bench.SizeClass, now time.Time) sizeclass.Question {
	return sizeclass.Question{Classes: classes, Original: original(j), Now: now, Memory: memory(fleet, config, j), CPUs: cpus(fleet, config, j)}
}

// memory is how much of it a job may use on the collectors of each class that can run
// it, in bytes: on the one that has most. A class of which a collector does not say is
// left out, so that it is tried.
func memory(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) map[bench.SizeClass]int64 {
	return most(placement.Fitting(fleet, requirements(config, j)), func(c placement.Collector) int64 { return c.MemoryBytes })
}

// cpus is the same of the CPUs that a job may use.
func cpus(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing) map[bench.SizeClass]int {
	return most(placement.Fitting(fleet, requirements(config, j)), func(c placement.Collector) int { return c.CPUs })
}

// most is the most of something that a collector of each class has, without the classes
// of which one does not say.
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

// place is where a job waits on a size class.
func place(fleet plan.Fleet, config bench.ProjectConfig, j store.Sizing, class bench.SizeClass) (bench.Place, error) {
	chosen, err := placement.Choose(fleet, requirements(config, j).On(class))
	return chosen.Place, err
}

// requirements of a job on any size class: its benchmark set binds it to a pool.
func requirements(config bench.ProjectConfig, j store.Sizing) placement.Requirements {
	return j.Requirements().In(boundPool(config, j))
}

// boundPool is the pool to which a job's benchmark set is bound; empty: none.
func boundPool(config bench.ProjectConfig, j store.Sizing) string {
	if j.Command != nil {
		return ""
	}
	return plan.BoundPool(config, j.Target, j.TestCases)
}

// Standing is where a job stands, and the larger class to which a failure leads.
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

// Attempts is what a project's configuration says about attempts.
func Attempts(config bench.ProjectConfig) retry.Policy {
	return retry.Policy{MaxJobFails: config.Fails()}
}

const (
	// beyond is what a command's whole run may take beyond its own time limits.
	beyond = time.Minute
	// suiteTimeout bounds a suite's job: it has its own limits, and this one is that
	// of the activity that runs it.
	suiteTimeout = 24 * time.Hour
)

// original is the time limit that a job has anyway.
func original(j store.Sizing) time.Duration {
	if j.Command == nil || j.Command.TimeoutSeconds <= 0 {
		return suiteTimeout
	}
	return min(suiteTimeout, time.Duration(j.Command.TimeoutSeconds)*time.Second*time.Duration(max(1, j.Command.Iterations))+beyond)
}
