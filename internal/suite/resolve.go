package suite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Default timeouts.
const (
	defaultPrepareTimeout = 15 * time.Minute
	defaultMeasureTimeout = 10 * time.Minute
)

// Preparation resolves the preparation of a variant.
func (s *Suite) Preparation(v Variant, paths Paths) (Preparation, error) {
	parts, err := s.parts(bench.TestCase{Benchmark: v.Benchmark, Profile: v.Profile, Backend: v.Backend, Target: v.Target}, false)
	if err != nil {
		return Preparation{}, err
	}
	p, err := parts.preparation(paths)
	return p, located(err)
}

// Recipe resolves the measurement of a test case; a positive iterations
// overrides the suite's number.
func (s *Suite) Recipe(tc bench.TestCase, paths Paths, iterations int) (Recipe, error) {
	parts, err := s.parts(tc, true)
	if err != nil {
		return Recipe{}, err
	}
	r, err := parts.recipe(paths)
	if iterations > 0 {
		r.Iterations = iterations
	}
	return r, located(err)
}

// located converts a fault to a problem with its position.
func located(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return &Error{Problems: []Problem{{File: FileName, Line: f.at.line, Column: f.at.column, Message: f.message}}}
	}
	return err
}

// parts holds the parts of a suite that apply to a test case, or to a variant
// if there is no scenario.
type parts struct {
	suite     *Suite
	tc        bench.TestCase
	procedure *procedure
	profile   parameter
	backend   parameter
	common    scenario // the procedure's
	benchmark *benchmark
	own       scenario // the benchmark's
}

// parts finds the parts by name. With a scenario, the test case must be part of
// the suite's expansion.
func (s *Suite) parts(tc bench.TestCase, withScenario bool) (*parts, error) {
	b := s.benchmark(tc.Benchmark)
	if b == nil {
		_, err := oneOf("benchmark", tc.Benchmark, s.Benchmarks())
		return nil, err
	}
	kind := s.kind(b)
	p := &parts{suite: s, tc: tc, procedure: s.procedure(kind), benchmark: b}
	backends, profiles := s.axes(kind, bench.Selection{Backends: s.Backends(), Profiles: s.Profiles()})
	for _, axis := range []struct {
		what, name string
		valid      []string
	}{{"profile", tc.Profile, profiles}, {"backend", tc.Backend, backends}} {
		if slices.Contains(axis.valid, axis.name) {
			continue
		}
		if len(axis.valid) == 1 && axis.valid[0] == "" {
			return nil, fmt.Errorf("%w: benchmark %s has no %s, but %q was requested", bench.ErrInvalid, tc.Benchmark, axis.what, axis.name)
		}
		_, err := oneOf(axis.what, axis.name, axis.valid)
		return nil, cmp.Or(err, fmt.Errorf("%w: %s %q: write it as the suite does", bench.ErrInvalid, axis.what, axis.name))
	}
	p.profile, _ = s.doc.Profiles.get(tc.Profile)
	p.backend, _ = s.doc.Backends.get(tc.Backend)
	if !withScenario {
		return p, nil
	}
	scenarios := s.scenarios(b)
	if len(scenarios) == 0 && tc.Scenario != "" || len(scenarios) > 0 && !slices.Contains(scenarios, tc.Scenario) {
		_, err := oneOf("scenario of "+tc.Benchmark, tc.Scenario, scenarios)
		return nil, cmp.Or(err, fmt.Errorf("%w: scenario %q: write it as the suite does", bench.ErrInvalid, tc.Scenario))
	}
	p.common, _ = p.procedure.Scenarios.get(tc.Scenario)
	p.own, _ = b.Scenarios.get(tc.Scenario)
	if !s.measured(b, tc) {
		return nil, fmt.Errorf("%w: the suite does not measure %s: it is excluded or of another target", bench.ErrInvalid, tc)
	}
	return p, nil
}

// site is the context in which templates are resolved: the visible variables,
// the environment of commands, and the base of relative paths.
type site struct {
	scope
	env   []named[text]
	dir   string
	paths Paths
}

// in returns the site for measuring or preparing a variant. While preparing,
// ${work} is ${prepared}, so that the environment is written only once.
func (p *parts) in(paths Paths, preparing bool) site {
	place := site{dir: paths.Work, paths: paths}
	if preparing {
		place.dir = paths.Prepared
	}
	place.builtin = map[string]string{
		"suite": paths.Suite, "artifact": paths.Artifact, "prepared": paths.Prepared, "work": place.dir, "cache": paths.Cache,
		"cpus":      strconv.Itoa(max(1, paths.CPUs)),
		"benchmark": p.tc.Benchmark, "profile": p.tc.Profile, "backend": p.tc.Backend, "target": string(p.tc.Target),
	}
	doc := p.suite.doc
	place.layers = []named[values]{doc.Vars, p.procedure.Vars, p.profile.Vars, p.backend.Vars, p.benchmark.Vars}
	place.env = []named[text]{doc.Env, p.procedure.Env, p.profile.Env, p.backend.Env, p.benchmark.Env}
	if !preparing {
		place.builtin["scenario"] = p.tc.Scenario
		place.layers = slices.Insert(place.layers, 4, p.common.Vars)
		place.layers = append(place.layers, p.own.Vars)
		place.env = slices.Insert(place.env, 4, p.common.Env)
		place.env = append(place.env, p.own.Env)
	}
	return place
}

func (p *parts) preparation(paths Paths) (Preparation, error) {
	place := p.in(paths, true)
	out := Preparation{Timeout: p.timeout(func(t timeouts) duration { return t.Prepare }, defaultPrepareTimeout)}
	b, proc, doc := p.benchmark, p.procedure, p.suite.doc
	files := b.Files
	if !files.given() {
		files = proc.Files
	}
	var err error
	if out.Files, err = p.files(place, files); err != nil {
		return out, err
	}
	for _, list := range [][]requirement{doc.Requires, proc.Requires, p.profile.Requires, p.backend.Requires, b.Requires} {
		for _, r := range list {
			requirement, err := place.requirement(r)
			if err != nil {
				return out, err
			}
			out.Requires = append(out.Requires, requirement)
		}
	}
	prepare := b.Prepare
	if prepare == nil {
		prepare = proc.Prepare
	}
	if out.Steps, err = place.steps(prepare, doc.PassEnv); err != nil {
		return out, err
	}
	hardlink := b.Hardlink
	if hardlink == nil {
		hardlink = proc.Hardlink
	}
	for _, dir := range hardlink {
		out.Hardlink = append(out.Hardlink, filepath.Join(paths.Prepared, filepath.FromSlash(dir.value)))
	}
	return out, nil
}

// files resolves the directory of the bundle that preparing starts from.
func (p *parts) files(place site, files text) (string, error) {
	if !files.given() {
		return "", nil
	}
	value, err := place.one(files)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(filepath.FromSlash(value)) {
		return "", &fault{files.at, fmt.Sprintf("files %q: name a directory of the suite, relative to its folder", value)}
	}
	if isDir, ok := p.suite.files[cleanSlash(value)]; !ok || !isDir {
		return "", &fault{files.at, fmt.Sprintf("files %q: the suite has no such directory", value)}
	}
	return filepath.Join(place.paths.Suite, filepath.FromSlash(value)), nil
}

func cleanSlash(name string) string {
	return filepath.ToSlash(filepath.Clean(filepath.FromSlash(name)))
}

func (p *parts) recipe(paths Paths) (Recipe, error) {
	place := p.in(paths, false)
	out := Recipe{
		Iterations: cmp.Or(p.benchmark.Iterations.value, p.procedure.Iterations.value, p.suite.doc.Iterations.value, defaultIterations),
		Warmups:    p.warmups(),
		Timeout:    p.timeout(func(t timeouts) duration { return t.Measure }, defaultMeasureTimeout),
	}
	prepare := p.own.Prepare
	if prepare == nil {
		prepare = p.common.Prepare
	}
	var err error
	if out.Prepare, err = place.steps(prepare, nil); err != nil {
		return out, err
	}
	if out.Before, err = place.steps(p.before(), nil); err != nil {
		return out, err
	}
	out.Measure, err = place.measurement(p.measure())
	return out, err
}

// before and measure return the benchmark's setting for the scenario, else its
// general one, else the procedure's for the scenario, else the procedure's
// general one.
func (p *parts) before() steps {
	for _, s := range []steps{p.own.Before, p.benchmark.Before, p.common.Before} {
		if s != nil {
			return s
		}
	}
	return p.procedure.Before
}

func (p *parts) measure() *measurement {
	return cmp.Or(p.own.Measure, p.benchmark.Measure, p.common.Measure, p.procedure.Measure)
}

func (p *parts) warmups() int {
	for _, c := range []count{p.benchmark.Warmups, p.procedure.Warmups} {
		if c.at != (position{}) {
			return c.value
		}
	}
	return p.suite.doc.Warmups.value
}

func (p *parts) timeout(which func(timeouts) duration, otherwise time.Duration) time.Duration {
	return cmp.Or(which(p.benchmark.Timeouts).value, which(p.procedure.Timeouts).value, which(p.suite.doc.Timeouts).value, otherwise)
}

func (a site) requirement(r requirement) (Requirement, error) {
	out := Requirement{}
	var errs [5]error
	out.Command, errs[0] = a.one(r.Command)
	out.Reason, errs[1] = a.one(r.Reason)
	out.Run, errs[2] = a.list(r.Run)
	out.Env, errs[3] = a.environment()
	if r.File.given() {
		out.File, errs[4] = a.one(r.File)
		if errs[4] == nil && !filepath.IsAbs(out.File) {
			errs[4] = &fault{r.File.at, fmt.Sprintf("file %q: write a whole path, such as ${artifact}/bin/x", out.File)}
		}
	}
	return out, firstError(errs[:]...)
}

func (a site) steps(list steps, passEnv words) ([]Step, error) {
	var out []Step
	for _, s := range list {
		step, err := a.step(s, passEnv)
		if err != nil {
			return nil, err
		}
		out = append(out, step)
	}
	return out, nil
}

func (a site) step(s step, passEnv words) (Step, error) {
	var out Step
	var err error
	var second error
	switch {
	case s.Run != nil:
		return a.runStep(s, passEnv)
	case s.Write != nil:
		out.Write, err = a.fileText(s.Write)
	case s.Append != nil:
		out.Append, err = a.fileText(s.Append)
	case s.Replace != nil:
		out.Replace = &Replacement{}
		out.Replace.File, err = a.writable(s.Replace.File)
		out.Replace.Old, second = a.one(s.Replace.Old)
		if err = firstError(err, second); err == nil {
			out.Replace.New, err = a.one(s.Replace.New)
		}
	case s.Copy != nil:
		out.Copy = &FileCopy{}
		out.Copy.To, err = a.writable(s.Copy.To)
		out.Copy.From, second = a.readable(s.Copy.From)
		err = firstError(err, second)
	default:
		out.Remove, err = a.writable(s.Remove)
	}
	return out, err
}

func (a site) runStep(s step, passEnv words) (out Step, err error) {
	if out.Run, err = a.list(s.Run); err != nil {
		return out, err
	}
	if out.Env, err = a.environment(s.Env); err != nil {
		return out, err
	}
	for _, name := range slices.Concat(passEnv, s.PassEnv) {
		if !slices.Contains(out.PassEnv, name.value) {
			out.PassEnv = append(out.PassEnv, name.value)
		}
	}
	out.Network = s.Network.value
	out.Dir, err = a.directory(s.Dir)
	return out, err
}

func (a site) fileText(f *fileText) (*FileText, error) {
	file, err := a.writable(f.File)
	content, second := a.one(f.Text)
	return &FileText{File: file, Text: content}, firstError(err, second)
}

func (a site) measurement(m *measurement) (out Measurement, err error) {
	if out.Run, err = a.list(m.Run); err != nil {
		return out, err
	}
	if out.Env, err = a.environment(m.Env); err != nil {
		return out, err
	}
	if out.Dir, err = a.directory(m.Dir); err != nil {
		return out, err
	}
	for _, size := range m.Sizes {
		file, err := a.one(size.value)
		if err != nil {
			return out, err
		}
		if file == "" {
			continue // this benchmark or profile writes none
		}
		file = a.absolute(file)
		if !below(file, a.paths.Work) {
			return out, &fault{size.value.at, fmt.Sprintf("%s: the measured command's outputs are below ${work}", size.name)}
		}
		if out.Sizes == nil {
			out.Sizes = map[bench.Metric]string{}
		}
		out.Sizes[bench.Metric(size.name)] = file
	}
	out.Network = m.Network.value
	out.Output = OutputFormat(m.Output.value)
	out.OnlyOutput = m.Record.value == recordOutput
	for _, metric := range m.Metrics {
		out.Metrics = append(out.Metrics, bench.Metric(metric.value))
	}
	return out, nil
}

func (a site) list(args []text) ([]string, error) {
	var out []string
	for _, arg := range args {
		more, err := a.each(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	if len(args) > 0 && (len(out) == 0 || out[0] == "") {
		return nil, &fault{args[0].at, "the command is empty after its variables were replaced"}
	}
	return out, nil
}

// environment merges the layers and the command's own variables, as sorted
// NAME=value.
func (a site) environment(own ...named[text]) ([]string, error) {
	merged := map[string]text{}
	for _, layer := range slices.Concat(a.env, own) {
		for _, e := range layer {
			merged[e.name] = e.value
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		value, err := a.one(merged[name])
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

func (a site) absolute(file string) string {
	file = filepath.FromSlash(file)
	if !filepath.IsAbs(file) {
		file = filepath.Join(a.dir, file)
	}
	return filepath.Clean(file)
}

// directory resolves a command's working directory.
func (a site) directory(t text) (string, error) {
	value, err := a.one(t)
	if err != nil {
		return "", err
	}
	dir := a.absolute(value)
	for _, root := range []string{a.dir, a.paths.Cache, a.paths.Suite, a.paths.Artifact} {
		if dir == root || below(dir, root) {
			return dir, nil
		}
	}
	return "", &fault{t.at, fmt.Sprintf("dir %q: commands run in or below ${work}", t.value)}
}

func (a site) writable(t text) (string, error) {
	return a.file(t, "files are changed below ${work} (in prepare: ${prepared}) or ${cache}", a.dir, a.paths.Cache)
}

func (a site) readable(t text) (string, error) {
	return a.file(t, "files are copied from below ${suite}, ${artifact}, ${prepared}, ${work} or ${cache}",
		a.dir, a.paths.Prepared, a.paths.Cache, a.paths.Suite, a.paths.Artifact)
}

func (a site) file(t text, rule string, roots ...string) (string, error) {
	value, err := a.one(t)
	if err != nil {
		return "", err
	}
	file := a.absolute(value)
	if slices.ContainsFunc(roots, func(root string) bool { return below(file, root) }) {
		return file, nil
	}
	return "", &fault{t.at, fmt.Sprintf("%q: %s", t.value, rule)}
}

// below reports whether a path is inside a directory and not the directory
// itself.
func below(file, dir string) bool {
	return dir != "" && strings.HasPrefix(file, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
