package suite

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// profiler says in data how a profiler is applied to a measured command.
type profiler struct {
	Description text          `yaml:"description"`
	Program     text          `yaml:"program" jsonschema:"enum=perf,enum=valgrind" doc:"A program that the machine must have; jobs are placed by it."`
	Run         arguments     `yaml:"run" jsonschema:"required" doc:"The command instead of the measured one, with ${measured} for that and ${profile_file} for the file to write."`
	Env         named[text]   `yaml:"env" doc:"Additional environment of run."`
	File        text          `yaml:"file" doc:"What run writes, a path or glob pattern below ${work}; several files become one profile. Default: ${profile_file}."`
	Convert     arguments     `yaml:"convert" doc:"A command that prints the file in the format, if run writes another one."`
	Format      text          `yaml:"format" jsonschema:"required,enum=pprof,enum=perf-script,enum=callgrind,enum=folded,enum=self-profile,enum=dhat,enum=firefox" doc:"The format of the file, or of what convert prints."`
	Type        text          `yaml:"type" doc:"Type of samples that is shown first, such as alloc_space; default: the file's own."`
	Timeout     duration      `yaml:"timeout" doc:"Bounds run, for example 1h; default: as the measured command."`
	Requires    []requirement `yaml:"requires" doc:"What the machine or the artifact must have."`
	at          position
}

func (p *profiler) place(at position) { p.at = at }

// Variables that only profilers have.
const (
	measuredVariable = "measured"
	fileVariable     = "profile_file"
)

//go:embed profilers.yaml
var commonText []byte

// commonProfilers returns the profilers for any command.
var commonProfilers = sync.OnceValue(func() named[profiler] {
	ps := &problems{}
	body, problem := parse(commonText)
	if problem != nil {
		panic("suite: profilers.yaml: " + problem.Message)
	}
	var out named[profiler]
	(&decoder{problems: ps}).value(body, reflect.ValueOf(&out).Elem())
	if err := ps.err(); err != nil {
		panic("suite: profilers.yaml: " + err.Error())
	}
	return out
})

// Profiling runs one test case under a profiler.
type Profiling struct {
	Profiler string
	// Requires is checked before anything is prepared.
	Requires []Requirement
	// Measure is the profiler's command instead of the measured one.
	Measure Measurement
	// File is the absolute path or glob pattern of the profiler's output.
	File string
	// Convert prints the file in Format; empty if the file has it already.
	Convert []string
	// Format of the file, or of the output of Convert.
	Format string
	// Type of samples to show first; empty leaves the choice to the file.
	Type string
	// Timeout bounds the profiler's command.
	Timeout time.Duration
}

// profiler finds a profiler by name: the benchmark's, else its procedure's, else the one
// for any command.
func (p *parts) profiler(name string) (profiler, error) {
	lists := []named[profiler]{p.benchmark.Profilers, p.procedure.Profilers, commonProfilers()}
	var names []string
	for _, list := range lists {
		if found, ok := list.get(name); ok {
			return found, nil
		}
		names = append(names, list.names()...)
	}
	slices.Sort(names)
	return profiler{}, fmt.Errorf("%w: unknown profiler %q of %s; it has %s", bench.ErrInvalid, name, p.tc.Benchmark, strings.Join(slices.Compact(names), ", "))
}

// procedureProfilers returns the profilers of the procedure; nil without parts.
func (p *parts) procedureProfilers() named[profiler] {
	if p == nil {
		return nil
	}
	return p.procedure.Profilers
}

// Profilers returns the names of the profilers of a benchmark, sorted; nil if the suite
// does not have it.
func (s *Suite) Profilers(benchmark string) []string {
	b := s.benchmark(benchmark)
	if b == nil {
		return nil
	}
	names := slices.Concat(b.Profilers.names(), s.procedure(s.kind(b)).Profilers.names(), commonProfilers().names())
	slices.Sort(names)
	return slices.Compact(names)
}

// ProfilerProgram returns the program by which jobs with the profiler are placed; the zero
// value if the profiler needs none.
func (s *Suite) ProfilerProgram(tc bench.TestCase, name string) (bench.Program, error) {
	parts, err := s.parts(tc, true)
	if err != nil {
		return bench.Program{}, err
	}
	p, err := parts.profiler(name)
	if err != nil {
		return bench.Program{}, err
	}
	program, _ := bench.ProgramOf(p.Program.value)
	return program, nil
}

// Profiling resolves a profiler for a test case.
func (s *Suite) Profiling(tc bench.TestCase, name string, paths Paths) (Profiling, error) {
	parts, err := s.parts(tc, true)
	if err != nil {
		return Profiling{}, err
	}
	p, err := parts.profiler(name)
	if err != nil {
		return Profiling{}, err
	}
	out, err := parts.profiling(name, p, paths)
	return out, located(err)
}

// profileFileName is the name of the file below ${work} that a profiler writes.
const profileFileName = "benchloom-profile"

func (p *parts) profiling(name string, with profiler, paths Paths) (out Profiling, err error) {
	place := p.in(paths, false)
	measure := p.measure()
	if out.Measure, err = place.measurement(measure); err != nil {
		return out, err
	}
	file := filepath.Join(paths.Work, profileFileName)
	place.builtin[fileVariable] = file
	place.layers = append(place.layers, named[values]{{name: measuredVariable, at: with.at, value: values{texts: measure.Run, list: true}}})
	out.Profiler, out.Format, out.Type, out.File = name, with.Format.value, with.Type.value, file
	if out.Measure.Run, err = place.list(with.Run); err != nil {
		return out, err
	}
	if out.Measure.Env, err = place.environment(measure.Env, with.Env); err != nil {
		return out, err
	}
	out.Measure.Output, out.Measure.Sizes, out.Measure.Metrics = OutputIgnored, nil, nil
	if with.File.given() {
		value, err := place.one(with.File)
		if err != nil {
			return out, err
		}
		if out.File = place.absolute(value); !below(out.File, paths.Work) {
			return out, &fault{with.File.at, fmt.Sprintf("file %q: a profiler writes below ${work}", value)}
		}
	}
	if out.Convert, err = place.list(with.Convert); err != nil {
		return out, err
	}
	for _, r := range with.Requires {
		required, err := place.requirement(r)
		if err != nil {
			return out, err
		}
		out.Requires = append(out.Requires, required)
	}
	out.Timeout = with.Timeout.value
	if out.Timeout == 0 {
		out.Timeout = p.timeout(func(t timeouts) duration { return t.Measure }, defaultMeasureTimeout)
	}
	return out, nil
}

// profilers checks everything that does not need resolved templates.
func (c *checker) profilers(list named[profiler]) {
	var names []text
	for _, p := range list {
		names = append(names, text{p.name, p.at})
		c.invalid(p.at, bench.CheckParameter("profiler", p.name))
		c.environment(p.value.Env)
		c.requirements(p.value.Requires)
		if t := p.value.Type; t.given() {
			c.invalid(t.at, bench.CheckParameter("type of samples", t.value))
		}
		uses := func(args arguments, variable string) bool {
			return slices.ContainsFunc(args, func(t text) bool { return slices.Contains(variablesIn(t.value), variable) })
		}
		if p.value.File.given() && len(p.value.Convert) > 0 {
			c.add(p.value.File.at, "file and convert exclude each other: what is converted is ${%s}", fileVariable)
		}
		if !p.value.File.given() && !uses(p.value.Run, fileVariable) {
			c.add(p.value.at, "profiler %s: run does not name ${%s}, so that nothing is known to be written; name it, or the file", p.name, fileVariable)
		}
	}
	c.unique("profiler", names)
}
