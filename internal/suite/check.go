package suite

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// maxWarmups is the upper limit of plausible warm-ups.
const maxWarmups = 1_000

// secretPrefixes lists the prefixes of variables that no command of a suite may
// see.
var secretPrefixes = []string{"BENCHLOOM_", "TEMPORAL_", "DATABASE_", "PG"}

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checker finds mistakes in a decoded document.
type checker struct {
	*problems
	suite *Suite
	doc   *document
}

// document checks everything that does not need resolved templates.
func (c *checker) document() {
	doc := c.doc
	c.invalid(doc.Name.at, bench.CheckName("suite", doc.Name.value))
	c.artifact(doc.Artifact)
	c.targets(doc.Targets, nil)
	c.metrics(doc.Metrics)
	c.counts(doc.Iterations, doc.Warmups)
	c.passEnv(doc.PassEnv)
	c.variables(doc.Vars)
	c.environment(doc.Env)
	c.requirements(doc.Requires)
	c.parameters("profile", doc.Profiles)
	c.parameters("backend", doc.Backends)
	if p := doc.Procedures.Compiletime; p != nil {
		if len(p.Backends) > 0 {
			c.add(p.Backends[0].at, "backends: compile-time benchmarks are measured with all backends of the suite; exclude some instead")
		}
		c.definition(p.definition, bench.KindCompileTime, c.suite.Scenarios())
	}
	if p := doc.Procedures.Runtime; p != nil {
		c.known("backend", p.Backends, c.suite.Backends())
		c.definition(p.definition, bench.KindRuntime, nil)
	}
	c.benchmarks()
	c.sets()
}

// artifact checks the parameters of the provider build, whose command would
// otherwise fail only on a collector.
func (c *checker) artifact(source artifactSource) {
	for _, p := range source.Parameters {
		if p.value.list && source.Provider.value != bench.BuildProvider {
			c.add(p.at, "parameter %s is a list; only the provider %s takes lists", p.name, bench.BuildProvider)
		}
	}
	if source.Provider.value == bench.BuildProvider {
		_, err := bench.ParseBuildRecipe(c.suite.Artifact().Parameters, "tag", c.suite.Targets()[0])
		c.invalid(source.Provider.at, err)
	}
}

// invalid reports the error of a constructor of package bench, if any.
func (c *checker) invalid(where position, err error) {
	if err != nil {
		c.add(where, "%s", strings.TrimPrefix(err.Error(), bench.ErrInvalid.Error()+": "))
	}
}

// unique reports names that are equal or differ only in case.
func (c *checker) unique(what string, names []text) {
	seen := map[string]text{}
	for _, name := range names {
		key := strings.ToLower(name.value)
		if first, twice := seen[key]; twice {
			c.add(name.at, "the %s %q appears twice; first in line %d", what, name.value, first.at.line)
			continue
		}
		seen[key] = name
	}
}

// known reports names that are not valid, and duplicates.
func (c *checker) known(what string, names words, valid []string) {
	for _, name := range names {
		if slices.Contains(valid, name.value) {
			continue
		}
		list := "the suite has none"
		if len(valid) > 0 {
			list = "the suite has " + strings.Join(valid, ", ")
		}
		c.add(name.at, "unknown %s %q; %s", what, name.value, list)
	}
	c.unique(what, names)
}

// targets checks target tuples; within, if not empty, lists the valid ones.
func (c *checker) targets(targets, within words) {
	for _, t := range targets {
		_, err := bench.ParseTarget(t.value)
		c.invalid(t.at, err)
	}
	if len(within) == 0 {
		c.unique("target", targets)
		return
	}
	valid := make([]string, len(within))
	for i, t := range within {
		valid[i] = t.value
	}
	c.known("target", targets, valid)
}

func (c *checker) metrics(m metrics) {
	for _, metric := range m.Required {
		c.invalid(metric.at, bench.CheckUnit(metric.value))
	}
	c.unique("metric", m.Required)
	for _, metric := range m.Exact {
		c.invalid(metric.at, bench.CheckUnit(metric.value))
	}
	c.unique("metric", m.Exact)
	for _, e := range m.Aggregate {
		c.invalid(e.at, bench.CheckUnit(e.name))
		if !slices.Contains(aggregations, e.value.value) {
			c.add(e.value.at, "aggregate %q is unknown; use %s", e.value.value, strings.Join(aggregations, ", "))
		}
	}
}

func (c *checker) counts(iterations, warmups count) {
	if iterations.at != (position{}) && (iterations.value < 1 || iterations.value > bench.MaxIterations) {
		c.add(iterations.at, "iterations: %d; use 1 to %d", iterations.value, bench.MaxIterations)
	}
	if warmups.value > maxWarmups {
		c.add(warmups.at, "warmups: %d; use 0 to %d", warmups.value, maxWarmups)
	}
}

func (c *checker) passEnv(names words) {
	for _, name := range names {
		if !environmentName.MatchString(name.value) {
			c.add(name.at, "%q cannot be the name of an environment variable", name.value)
		}
		for _, prefix := range secretPrefixes {
			if strings.HasPrefix(strings.ToUpper(name.value), prefix) {
				c.add(name.at, "pass_env %s: variables that begin with %s are never passed to a suite's commands", name.value, strings.Join(secretPrefixes, ", "))
			}
		}
	}
}

func (c *checker) variables(vars named[values]) {
	builtin := (&parts{suite: c.suite, procedure: &procedure{}, benchmark: &benchmark{}}).in(Paths{}, false).builtin
	builtin[measuredVariable], builtin[fileVariable] = "", ""
	for _, v := range vars {
		if !validVariable(v.name) {
			c.add(v.at, "variable %q: use lower-case letters, digits, '_' and '-', beginning with a letter", v.name)
		} else if _, hidden := builtin[v.name]; hidden {
			c.add(v.at, "the variable ${%s} is built in; choose another name", v.name)
		}
	}
}

func (c *checker) environment(env named[text]) {
	for _, e := range env {
		if !environmentName.MatchString(e.name) {
			c.add(e.at, "%q cannot be the name of an environment variable", e.name)
		}
	}
}

func (c *checker) requirements(list []requirement) {
	for _, r := range list {
		c.exactlyOne(r.at, []string{"command", "file", "run"}, r.Command.given(), r.File.given(), r.Run != nil)
		c.reason(r.Reason)
	}
}

func (c *checker) reason(reason text) {
	if strings.TrimSpace(reason.value) == "" {
		c.add(reason.at, "the reason is empty; say it to the people who will ask")
	}
}

func (c *checker) exactlyOne(where position, keys []string, given ...bool) {
	var found []string
	for i, key := range keys {
		if given[i] {
			found = append(found, key)
		}
	}
	switch len(found) {
	case 1:
	case 0:
		c.add(where, "one of %s is needed here", strings.Join(keys, ", "))
	default:
		c.add(where, "%s exclude each other; write one of them", strings.Join(found, " and "))
	}
}

func (c *checker) parameters(what string, list named[parameter]) {
	var names []text
	for _, p := range list {
		names = append(names, text{p.name, p.at})
		c.invalid(p.at, bench.CheckParameter(what, p.name))
		c.targets(p.value.Targets, c.doc.Targets)
		c.variables(p.value.Vars)
		c.environment(p.value.Env)
		c.requirements(p.value.Requires)
	}
	c.unique(what, names)
}

func (c *checker) definition(d definition, kind bench.JobKind, scenarios []string) {
	c.variables(d.Vars)
	c.environment(d.Env)
	c.requirements(d.Requires)
	c.counts(d.Iterations, d.Warmups)
	c.steps(d.Prepare, stepsPrepare)
	c.steps(d.Before, stepsBefore)
	c.measurement(d.Measure)
	c.profilers(d.Profilers)
	for _, dir := range d.Hardlink {
		if !filepath.IsLocal(filepath.FromSlash(dir.value)) {
			c.add(dir.at, "hardlink %q: name a directory below ${prepared}, relative to it", dir.value)
		}
	}
	if kind == bench.KindRuntime && len(d.Scenarios) > 0 {
		c.add(d.Scenarios[0].at, "runtime benchmarks have no scenarios; write several benchmarks")
	}
	var names []text
	for _, s := range d.Scenarios {
		names = append(names, text{s.name, s.at})
		c.invalid(s.at, bench.CheckParameter("scenario", s.name))
		c.variables(s.value.Vars)
		c.environment(s.value.Env)
		c.steps(s.value.Prepare, stepsScenario)
		c.steps(s.value.Before, stepsBefore)
		c.measurement(s.value.Measure)
	}
	c.unique("scenario", names)
	c.exclusions(d.Exclude, scenarios)
}

func (c *checker) exclusions(list []exclusion, scenarios []string) {
	for _, e := range list {
		if len(e.Profile)+len(e.Scenario)+len(e.Backend)+len(e.Target) == 0 {
			c.add(e.at, "this excludes everything; name a profile, scenario, backend or target")
		}
		c.known("profile", e.Profile, c.suite.Profiles())
		c.known("scenario", e.Scenario, scenarios)
		c.known("backend", e.Backend, c.suite.Backends())
		c.targets(e.Target, c.doc.Targets)
		c.reason(e.Reason)
	}
}

// stepsOf tells what steps belong to.
type stepsOf int

const (
	stepsPrepare  stepsOf = iota // prepare of a procedure or benchmark
	stepsScenario                // prepare of a scenario
	stepsBefore
)

func (c *checker) steps(list steps, of stepsOf) {
	for _, s := range list {
		c.exactlyOne(s.at, []string{"run", "write", "append", "replace", "copy", "remove"},
			s.Run != nil, s.Write != nil, s.Append != nil, s.Replace != nil, s.Copy != nil, s.Remove.given())
		if s.Run == nil && (s.Dir.given() || len(s.Env) > 0 || len(s.PassEnv) > 0 || s.Network.at != (position{})) {
			c.add(s.at, "dir, env, pass_env and network belong to run; this step has none")
		}
		if of != stepsBefore && s.Network.at != (position{}) {
			c.add(s.Network.at, "network: only before steps and measured commands need it, because prepare steps always reach the network; leave it out")
		}
		if of != stepsPrepare && len(s.PassEnv) > 0 {
			c.add(s.PassEnv[0].at, "pass_env: only prepare steps of procedures and benchmarks may see the collector's environment, to download; the rest works without them")
		}
		if s.Replace != nil && s.Replace.Old.value == "" {
			c.add(s.Replace.Old.at, "replace: old is empty; name the text to be replaced")
		}
		c.passEnv(s.PassEnv)
		c.environment(s.Env)
	}
}

func (c *checker) measurement(m *measurement) {
	if m == nil {
		return
	}
	c.environment(m.Env)
	for _, s := range m.Sizes {
		if rest, ok := strings.CutPrefix(s.name, bench.SizePrefix); !ok || rest == "" {
			c.add(s.at, "sizes: %q is not a name for the size of a file; write %s<what>, such as %sbinary", s.name, bench.SizePrefix, bench.SizePrefix)
		}
		c.invalid(s.at, bench.CheckUnit(s.name))
	}
	for _, metric := range m.Metrics {
		c.invalid(metric.at, bench.CheckUnit(metric.value))
	}
	c.unique("metric", m.Metrics)
	if len(m.Metrics) > 0 && !m.Output.given() {
		c.add(m.Metrics[0].at, "metrics are read from the output; write output: benchfmt")
	}
	if m.Record.value == recordOutput && !m.Output.given() && len(m.Sizes) == 0 {
		c.add(m.Record.at, "record: output leaves nothing to record; write output: benchfmt, or sizes")
	}
}

func (c *checker) benchmarks() {
	if len(c.doc.Benchmarks) == 0 {
		c.add(position{1, 1}, "the suite has no benchmarks")
	}
	var names []text
	for i := range c.doc.Benchmarks {
		b := &c.doc.Benchmarks[i]
		names = append(names, b.Name)
		c.invalid(b.Name.at, bench.CheckParameter("benchmark", b.Name.value))
		if p := c.doc.Procedures; !b.Kind.given() && p.Compiletime != nil && p.Runtime != nil {
			c.add(b.at, "benchmark %s: the suite has procedures for compiletime and runtime; write kind", b.Name.value)
		}
		if b.MinSize.at != (position{}) {
			_, err := bench.NewSizeClass(b.MinSize.value)
			c.invalid(b.MinSize.at, err)
		}
		c.targets(b.Targets, c.doc.Targets)
		c.definition(b.definition, c.suite.kind(b), c.suite.scenarios(b))
		c.measures(b)
	}
	c.unique("benchmark", names)
}

// measures reports scenarios without a measured command.
func (c *checker) measures(b *benchmark) {
	proc := c.suite.procedure(c.suite.kind(b))
	if b.Measure != nil || proc.Measure != nil {
		return
	}
	scenarios := c.suite.scenarios(b)
	if len(scenarios) == 0 {
		c.add(b.at, "benchmark %s has no measure, nor has its procedure", b.Name.value)
	}
	for _, name := range scenarios {
		own, _ := b.Scenarios.get(name)
		common, _ := proc.Scenarios.get(name)
		if own.Measure == nil && common.Measure == nil {
			c.add(b.at, "benchmark %s has no measure for the scenario %s, nor has its procedure", b.Name.value, name)
		}
	}
}

func (c *checker) sets() {
	var names []text
	for _, e := range c.doc.Sets {
		names = append(names, text{e.name, e.at})
		c.invalid(e.at, bench.CheckName("set", e.name))
		set := e.value
		c.known("benchmark", set.Benchmarks, c.suite.Benchmarks())
		c.known("profile", set.Profiles, c.suite.Profiles())
		c.known("scenario", set.Scenarios, c.suite.Scenarios())
		c.known("backend", set.Backends, c.suite.Backends())
		c.targets(set.Targets, c.doc.Targets)
		c.counts(set.Iterations, count{})
	}
	c.unique("set", names)
}

// resolveAll resolves every variant and test case once, with example paths, so
// that a loaded suite cannot fail later.
func (c *checker) resolveAll() {
	if n := c.suite.combinations(); n > maxTestCases {
		c.add(position{1, 1}, "the suite has %d combinations of benchmarks, profiles, scenarios, backends and targets; at most %d are possible", n, maxTestCases)
		return
	}
	paths := examplePaths()
	for i := range c.doc.Benchmarks {
		b := &c.doc.Benchmarks[i]
		backends, profiles := c.suite.axes(c.suite.kind(b), bench.Selection{Backends: c.suite.Backends(), Profiles: c.suite.Profiles()})
		for _, backend := range backends {
			for _, profile := range profiles {
				c.resolve(b, bench.TestCase{Benchmark: b.Name.value, Profile: profile, Backend: backend}, paths)
			}
		}
	}
	for _, e := range c.doc.Sets {
		if _, err := c.suite.Expand(bench.Selection{Set: e.name}); err != nil {
			c.add(e.at, "set %s: no test case is in it; its benchmarks are not measured with its profiles, scenarios, backends and targets", e.name)
		}
	}
}

// resolve checks a variant and its test cases. The target matters only for
// exclusions; a template sees only its name.
func (c *checker) resolve(b *benchmark, tc bench.TestCase, paths Paths) {
	if c.full() {
		return
	}
	tc.Target = c.suite.Targets()[0]
	p, err := c.suite.parts(tc, false)
	if err != nil {
		c.fault(b, err)
		return
	}
	prepared, err := p.preparation(paths)
	if err == nil {
		c.copies(b, prepared, paths)
	}
	c.fault(b, err)
	scenarios := c.suite.scenarios(b)
	if len(scenarios) == 0 {
		scenarios = []string{""}
	}
	targets := c.suite.Targets()
	for _, list := range []words{b.Targets, p.profile.Targets, p.backend.Targets} {
		for _, t := range list {
			targets = append(targets, bench.Target(t.value))
		}
	}
	for _, scenario := range scenarios {
		for _, target := range targets {
			tc.Scenario, tc.Target = scenario, target
			if c.suite.measured(b, tc) {
				p, err := c.suite.parts(tc, true)
				if err == nil {
					_, err = p.recipe(paths)
				}
				for _, own := range slices.Concat(b.Profilers, p.procedureProfilers()) {
					if err == nil {
						_, err = p.profiling(own.name, own.value, paths)
					}
				}
				c.fault(b, err)
				break
			}
		}
	}
}

// copies reports steps that copy files missing from the suite.
func (c *checker) copies(b *benchmark, prepared Preparation, paths Paths) {
	for _, step := range prepared.Steps {
		if step.Copy == nil || !below(step.Copy.From, paths.Suite) {
			continue
		}
		name, err := filepath.Rel(paths.Suite, step.Copy.From)
		if _, ok := c.suite.files[filepath.ToSlash(name)]; err != nil || !ok {
			c.add(b.at, "benchmark %s copies ${suite}/%s, which the suite does not have", b.Name.value, filepath.ToSlash(name))
		}
	}
}

func (c *checker) fault(b *benchmark, err error) {
	if err == nil {
		return
	}
	if f, ok := errors.AsType[*fault](err); ok {
		c.add(f.at, "%s", f.message)
		return
	}
	c.add(b.at, "%s", err)
}

// combinations returns an upper bound of the number of a suite's test cases.
func (s *Suite) combinations() int {
	total := 0
	for i := range s.doc.Benchmarks {
		b := &s.doc.Benchmarks[i]
		backends, profiles := s.axes(s.kind(b), bench.Selection{Backends: s.Backends(), Profiles: s.Profiles()})
		n := len(s.Targets()) * max(1, len(s.scenarios(b)))
		// Limited at each step, so that products of list lengths do not
		// overflow.
		total += min(n*len(backends), maxTestCases+1) * len(profiles)
	}
	return total
}

// examplePaths returns paths that are absolute on any system and exist on none.
func examplePaths() Paths {
	root := string(filepath.Separator) + "benchloom"
	if !filepath.IsAbs(root) {
		root = `C:` + root
	}
	return Paths{
		Suite: filepath.Join(root, "suite"), Artifact: filepath.Join(root, "artifact"), Prepared: filepath.Join(root, "prepared"),
		Work: filepath.Join(root, "work"), Cache: filepath.Join(root, "cache"), CPUs: 1,
	}
}
