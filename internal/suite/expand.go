package suite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// defaultSet is the set that is used when none is selected.
const defaultSet = "default"

// Expand turns a selection into jobs, in a fixed order: compile time before
// runtime, then target, backend and profile, each in the suite's order; test
// cases in the order of benchmarks and scenarios. A name that the suite does
// not have is an error that lists the valid ones; an empty selection is an
// error, too.
func (s *Suite) Expand(sel bench.Selection) ([]JobPlan, error) {
	chosen, err := s.choose(sel)
	if err != nil {
		return nil, err
	}
	var plans []JobPlan
	for _, kind := range []bench.JobKind{bench.KindCompileTime, bench.KindRuntime} {
		backends, profiles := s.axes(kind, chosen)
		for _, target := range chosen.Targets {
			for _, backend := range backends {
				for _, profile := range profiles {
					plan := s.plan(kind, chosen, bench.TestCase{Profile: profile, Backend: backend, Target: target})
					if len(plan.TestCases) > 0 {
						plans = append(plans, plan)
					}
				}
			}
		}
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("%w: the selection has no test cases: no chosen benchmark is measured with the chosen profiles, scenarios, backends and targets", bench.ErrInvalid)
	}
	return plans, nil
}

// Has reports whether the suite measures a test case.
func (s *Suite) Has(tc bench.TestCase) bool {
	one := func(name string) []string {
		if name == "" {
			return nil
		}
		return []string{name}
	}
	plans, err := s.Expand(bench.Selection{
		Benchmarks: one(tc.Benchmark), Profiles: one(tc.Profile), Scenarios: one(tc.Scenario), Backends: one(tc.Backend), Targets: []bench.Target{tc.Target},
	})
	return err == nil && slices.ContainsFunc(plans, func(p JobPlan) bool { return slices.Contains(p.TestCases, tc) })
}

// Iterations returns the number of iterations that a selection or its set
// requests, to be passed to [Suite.Recipe]; 0 leaves it to the suite.
func (s *Suite) Iterations(sel bench.Selection) int {
	if sel.Iterations > 0 {
		return sel.Iterations
	}
	if set, ok := s.doc.Sets.get(s.setName(sel)); ok {
		return set.Iterations.value
	}
	return 0
}

func (s *Suite) setName(sel bench.Selection) string {
	if sel.Set != "" {
		for _, name := range s.Sets() {
			if name, err := oneOf("set", sel.Set, []string{name}); err == nil {
				return name
			}
		}
		return sel.Set
	}
	return defaultSet
}

// choose applies the set, then the selection, and fills in the suite's
// defaults. It returns names in the suite's spelling.
func (s *Suite) choose(sel bench.Selection) (bench.Selection, error) {
	set, ok := s.doc.Sets.get(s.setName(sel))
	if !ok && sel.Set != "" {
		_, err := oneOf("set", sel.Set, s.Sets())
		return bench.Selection{}, err
	}
	var errs []error
	pick := func(what string, asked []string, fromSet words, all []string) []string {
		names := asked
		if len(names) == 0 {
			for _, w := range fromSet {
				names = append(names, w.value)
			}
		}
		if len(names) == 0 {
			return all
		}
		var picked []string
		for _, name := range names {
			right, err := oneOf(what, name, all)
			errs = append(errs, err)
			picked = append(picked, right)
		}
		// The suite's order, each once.
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(picked, name) })
	}
	chosen := bench.Selection{
		Benchmarks: pick("benchmark", sel.Benchmarks, set.Benchmarks, s.Benchmarks()),
		Profiles:   pick("profile", sel.Profiles, set.Profiles, s.Profiles()),
		Scenarios:  pick("scenario", sel.Scenarios, set.Scenarios, s.Scenarios()),
		Backends:   pick("backend", sel.Backends, set.Backends, s.Backends()),
	}
	targets := make([]string, 0, len(sel.Targets))
	for _, t := range sel.Targets {
		targets = append(targets, string(t))
	}
	for _, t := range pick("target", targets, set.Targets, s.selectableTargets(sel.Targets)) {
		target, err := bench.ParseTarget(t)
		errs = append(errs, err)
		chosen.Targets = append(chosen.Targets, target)
	}
	return chosen, errors.Join(errs...)
}

// selectableTargets returns the suite's targets, or the requested ones if it
// lists none.
func (s *Suite) selectableTargets(asked []bench.Target) []string {
	targets := s.Targets()
	if len(s.doc.Targets) == 0 {
		for _, t := range asked {
			if !slices.Contains(targets, t) {
				targets = append(targets, t)
			}
		}
	}
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = string(t)
	}
	return names
}

// axes returns the backends and profiles of jobs of a kind; a single empty name
// means none.
func (s *Suite) axes(kind bench.JobKind, chosen bench.Selection) (backends, profiles []string) {
	backends, profiles = []string{""}, []string{""}
	if kind == bench.KindCompileTime {
		if len(s.doc.Backends) > 0 {
			backends = chosen.Backends
		}
		if len(s.doc.Profiles) > 0 {
			profiles = chosen.Profiles
		}
	} else if own := s.procedure(kind).Backends; len(own) > 0 {
		backends = nil
		for _, name := range chosen.Backends {
			if own.has(name) {
				backends = append(backends, name)
			}
		}
	}
	return backends, profiles
}

func (s *Suite) plan(kind bench.JobKind, chosen bench.Selection, parameters bench.TestCase) JobPlan {
	plan := JobPlan{Kind: kind, Target: parameters.Target, Backend: parameters.Backend, Profile: parameters.Profile, MinSize: 1}
	for i := range s.doc.Benchmarks {
		b := &s.doc.Benchmarks[i]
		if s.kind(b) != kind || !slices.Contains(chosen.Benchmarks, b.Name.value) {
			continue
		}
		scenarios := s.scenarios(b)
		if len(scenarios) == 0 {
			scenarios = []string{""}
		}
		for _, scenario := range scenarios {
			tc := parameters
			tc.Benchmark, tc.Scenario = b.Name.value, scenario
			if (scenario == "" || slices.Contains(chosen.Scenarios, scenario)) && s.measured(b, tc) {
				plan.TestCases = append(plan.TestCases, tc)
				plan.MinSize = max(plan.MinSize, bench.SizeClass(b.MinSize.value))
			}
		}
	}
	return plan
}

// measured reports whether a combination is neither excluded nor of another
// target.
func (s *Suite) measured(b *benchmark, tc bench.TestCase) bool {
	targets := []words{s.doc.Targets, b.Targets}
	if p, ok := s.doc.Profiles.get(tc.Profile); ok {
		targets = append(targets, p.Targets)
	}
	if p, ok := s.doc.Backends.get(tc.Backend); ok {
		targets = append(targets, p.Targets)
	}
	for _, list := range targets {
		if len(list) > 0 && !list.has(string(tc.Target)) {
			return false
		}
	}
	for _, list := range [][]exclusion{s.procedure(s.kind(b)).Exclude, b.Exclude} {
		if slices.ContainsFunc(list, func(e exclusion) bool { return e.matches(tc) }) {
			return false
		}
	}
	return true
}

func (e exclusion) matches(tc bench.TestCase) bool {
	match := func(list words, name string) bool { return len(list) == 0 || list.has(name) }
	return match(e.Profile, tc.Profile) && match(e.Scenario, tc.Scenario) &&
		match(e.Backend, tc.Backend) && match(e.Target, string(tc.Target))
}

func (w words) has(name string) bool {
	return slices.ContainsFunc(w, func(t text) bool { return t.value == name })
}
