package suite

import (
	"errors"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Report holds the findings about a suite's folder, made without running anything.
type Report struct {
	// Name and Hash describe the suite; empty if it cannot be loaded or packed.
	Name string `json:"name,omitempty"`
	Hash string `json:"hash,omitempty"`
	// Problems are errors and warnings.
	Problems []Problem `json:"problems,omitempty"`
	// Sizes counts the work: first of the default selection, then of each set.
	Sizes []SelectionSize `json:"sizes,omitempty"`
}

// SelectionSize counts the jobs and test cases of a selection, over all default
// targets.
type SelectionSize struct {
	// Set is empty for the default selection.
	Set       string `json:"set,omitempty"`
	Jobs      int    `json:"jobs"`
	TestCases int    `json:"test_cases"`
}

// OK reports whether the suite can be used: it has no problems but warnings.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Problems, func(p Problem) bool { return !p.Warning })
}

// Check checks a suite's folder. The report lists problems of the suite; the
// error is about files that could not be read.
func Check(dir string) (Report, error) {
	var report Report
	bundle, err := Pack(dir)
	if err != nil && !errors.Is(err, bench.ErrInvalid) {
		return report, err
	}
	if err != nil {
		if err := report.add(err); err != nil {
			return report, err
		}
	}
	report.Hash = bundle.Hash
	s, err := LoadDir(dir)
	if err != nil {
		return report, report.add(err)
	}
	report.Name = s.Name()
	report.Problems = append(report.Problems, s.warnings(dir)...)
	for _, set := range append([]string{""}, s.Sets()...) {
		plans, err := s.Expand(bench.Selection{Set: set})
		if err != nil {
			return report, report.add(err)
		}
		size := SelectionSize{Set: set, Jobs: len(plans)}
		for _, plan := range plans {
			size.TestCases += len(plan.TestCases)
		}
		report.Sizes = append(report.Sizes, size)
	}
	return report, nil
}

// add adds the problems of the suite to the report and returns any other error.
func (r *Report) add(err error) error {
	if all, ok := errors.AsType[*Error](err); ok {
		r.Problems = append(r.Problems, all.Problems...)
		return nil
	}
	if errors.Is(err, bench.ErrInvalid) {
		r.Problems = append(r.Problems, Problem{File: FileName, Message: err.Error()})
		return nil
	}
	return err
}

// everything returns all jobs of the suite, ignoring its default set.
func (s *Suite) everything() []JobPlan {
	plans, err := s.Expand(bench.Selection{
		Benchmarks: s.Benchmarks(), Profiles: s.Profiles(), Scenarios: s.Scenarios(), Backends: s.Backends(), Targets: s.Targets(),
	})
	if err != nil {
		return nil // all combinations are excluded
	}
	return plans
}

func (s *Suite) warnings(dir string) []Problem {
	ps := &problems{}
	s.warnUnmeasured(ps)
	s.warnVariables(ps)
	s.warnFiles(ps, s.artifactsIn(dir))
	return ps.sorted()
}

// warnUnmeasured warns of names that no test case has.
func (s *Suite) warnUnmeasured(ps *problems) {
	used := map[[2]string]bool{}
	for _, plan := range s.everything() {
		for _, tc := range plan.TestCases {
			used[[2]string{"benchmark", tc.Benchmark}] = true
			used[[2]string{"profile", tc.Profile}] = true
			used[[2]string{"backend", tc.Backend}] = true
			used[[2]string{"scenario", tc.Scenario}] = true
		}
	}
	unused := func(what, name string, at position) {
		if !used[[2]string{what, name}] {
			ps.warn(at, "the %s %s has no test case: no benchmark is measured with it, or all are excluded", what, name)
		}
	}
	for i := range s.doc.Benchmarks {
		b := &s.doc.Benchmarks[i]
		if name := b.Name.value; !used[[2]string{"benchmark", name}] {
			ps.warn(b.Name.at, "the benchmark %s has no test case: all its combinations are excluded", name)
		}
	}
	for _, e := range s.doc.Profiles {
		unused("profile", e.name, e.at)
	}
	for _, e := range s.doc.Backends {
		unused("backend", e.name, e.at)
	}
	for _, e := range s.procedure(bench.KindCompileTime).Scenarios {
		unused("scenario", e.name, e.at)
	}
}

// warnVariables warns of unused variables.
func (s *Suite) warnVariables(ps *problems) {
	named := map[string]bool{}
	var defined []entry[values]
	walk(reflect.ValueOf(s.doc), func(v any) {
		switch v := v.(type) {
		case text:
			for _, name := range variablesIn(v.value) {
				named[name] = true
			}
		case entry[values]:
			defined = append(defined, v)
		}
	})
	for _, v := range defined {
		if !named[v.name] {
			ps.warn(v.at, "the variable %s is never used", v.name)
		}
	}
}

// walk visits every text and every entry of a document.
func walk(v reflect.Value, visit func(any)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	case reflect.Struct:
		if v.CanInterface() && visitWhole(v.Interface(), visit) {
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous {
				walk(v.Field(i), visit)
			}
		}
	}
}

// visitWhole visits values with unexported fields, which reflection cannot
// reach.
func visitWhole(v any, visit func(any)) bool {
	switch v := v.(type) {
	case text:
		visit(v)
	case values:
		for _, t := range v.texts {
			visit(t)
		}
	case interface{ content() any }:
		visit(v)
		walk(reflect.ValueOf(v.content()), visit)
	default:
		return false
	}
	return true
}

func (e entry[T]) content() any { return e.value }

// suiteReference matches references of a resolved command, step or file to
// paths below the suite's example path.
var suiteReference = regexp.MustCompile(regexp.QuoteMeta(examplePaths().Suite) + `(?:[/\\]([^\s"'*;|&]*))?`)

// documentation matches files that benchmarks need not use.
var documentation = regexp.MustCompile(`(?i)^(readme|license|copying|notice|changelog)(\..*)?$|^\.gitignore$`)

// artifactsIn returns the directory in the suite's own folder that its
// artifacts come from, as in suites created by [Init]; empty for none.
func (s *Suite) artifactsIn(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for _, p := range s.doc.Artifact.Parameters {
		fixed, _, _ := strings.Cut(p.value.parameter(), "{")
		if rel, err := filepath.Rel(abs, fixed); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

// warnFiles warns of unreferenced files outside a known directory.
func (s *Suite) warnFiles(ps *problems, known string) {
	referenced := map[string]bool{FileName: true, known: true}
	note := func(resolved string) {
		for _, match := range suiteReference.FindAllStringSubmatch(resolved, -1) {
			referenced[path.Clean(filepath.ToSlash(match[1]))] = true
		}
	}
	paths := examplePaths()
	for _, plan := range s.everything() {
		for _, tc := range plan.TestCases {
			prepared, err := s.Preparation(VariantOf(tc), paths)
			if err != nil {
				continue
			}
			recipe, err := s.Recipe(tc, paths, 0)
			if err != nil {
				continue
			}
			note(prepared.Files)
			noteStrings(reflect.ValueOf(prepared), note)
			noteStrings(reflect.ValueOf(recipe), note)
			for _, name := range s.Profilers(tc.Benchmark) {
				if with, err := s.Profiling(tc, name, paths); err == nil {
					noteStrings(reflect.ValueOf(with), note)
				}
			}
		}
	}
	for name, isDir := range s.files {
		if isDir || documentation.MatchString(path.Base(name)) {
			continue
		}
		if !covered(name, referenced) {
			ps.put(Problem{File: name, Message: "nothing in the suite names this file", Warning: true})
		}
	}
}

// covered reports whether a file or one of its directories is referenced.
func covered(name string, referenced map[string]bool) bool {
	for ; name != "."; name = path.Dir(name) {
		if referenced[name] {
			return true
		}
	}
	return referenced["."]
}

func noteStrings(v reflect.Value, note func(string)) {
	switch v.Kind() {
	case reflect.String:
		note(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			noteStrings(v.Elem(), note)
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteStrings(v.Index(i), note)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			noteStrings(v.MapIndex(key), note)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			noteStrings(v.Field(i), note)
		}
	}
}
