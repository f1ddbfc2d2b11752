package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Suite is a loaded suite. It never changes and is safe for concurrent use.
type Suite struct {
	doc *document
	// files are the suite's files and directories, slash-separated.
	files fileList
}

// fileList maps the names of files and directories; the value is true for
// directories.
type fileList map[string]bool

const (
	// MaxFiles limits the number of a suite's files.
	MaxFiles = 10_000
	// maxTestCases limits the number of a suite's test cases, over all its
	// targets.
	maxTestCases = 20_000
	// defaultIterations is the number of iterations if the suite sets none.
	defaultIterations = 5
)

// defaultTargets are measured if a suite lists no targets.
var defaultTargets = []bench.Target{"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}

// Load reads and checks a suite. Mistakes in it are returned as an [*Error]
// with all problems.
func Load(fsys fs.FS) (*Suite, error) {
	files, err := listFiles(fsys)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(fsys, FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Problems: []Problem{{File: FileName, Message: "no such file; a folder with it is a suite (benchloom suite init makes one)"}}}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	return load(data, files)
}

// LoadDir is [Load] for a directory.
func LoadDir(dir string) (*Suite, error) { return Load(os.DirFS(dir)) }

// Parse is [Load] for the text of a suite without other files.
func Parse(text []byte) (*Suite, error) { return load(text, fileList{}) }

func load(data []byte, files fileList) (*Suite, error) {
	ps := &problems{}
	doc := decode(data, ps)
	// Undecoded parts would only cause further, misleading problems.
	if err := ps.err(); err != nil {
		return nil, err
	}
	s := &Suite{doc: doc, files: files}
	c := &checker{problems: ps, suite: s, doc: doc}
	c.document()
	if len(ps.list) == 0 {
		c.resolveAll()
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	return s, nil
}

func listFiles(fsys fs.FS) (fileList, error) {
	files := fileList{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if ignored(path.Base(name)) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		files.add(name)
		if len(files) > 2*MaxFiles {
			return tooMany(name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the suite: %w", err)
	}
	return files, nil
}

// add adds a file and the directories it is in. Empty directories are not part
// of a suite: bundles do not have them.
func (l fileList) add(name string) {
	l[name] = false
	for dir := path.Dir(name); dir != "." && !l[dir]; dir = path.Dir(dir) {
		l[dir] = true
	}
}

func tooMany(name string) error {
	return &Error{Problems: []Problem{{File: name, Message: fmt.Sprintf("the suite has more than %d files; remove what benchmarks do not need, such as build outputs", MaxFiles)}}}
}

// ignored reports whether a file belongs to version control or a desktop.
func ignored(base string) bool {
	return slices.Contains([]string{".git", ".hg", ".svn", ".DS_Store"}, base)
}

// Artifact describes the source of a suite's artifacts.
type Artifact struct {
	Provider   string            `json:"provider"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Name returns the suite's name.
func (s *Suite) Name() string { return s.doc.Name.value }

// Description returns the suite's description, a sentence or "".
func (s *Suite) Description() string { return s.doc.Description.value }

// Artifact tells where the suite's artifacts come from.
func (s *Suite) Artifact() Artifact {
	a := Artifact{Provider: s.doc.Artifact.Provider.value}
	for _, p := range s.doc.Artifact.Parameters {
		if a.Parameters == nil {
			a.Parameters = map[string]string{}
		}
		a.Parameters[p.name] = p.value.parameter()
	}
	return a
}

// parameter returns a value in the form that providers accept: a string, or a
// list as a JSON array of strings.
func (v setting) parameter() string {
	if !v.list {
		if len(v.texts) == 0 {
			return ""
		}
		return v.texts[0].value
	}
	list := make([]string, len(v.texts))
	for i, t := range v.texts {
		list[i] = t.value
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		panic(fmt.Sprintf("suite: encoding a list of strings: %v", err)) // cannot happen
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Targets returns the targets measured by default. A suite that lists none can
// be measured on any target.
func (s *Suite) Targets() []bench.Target {
	if len(s.doc.Targets) == 0 {
		return slices.Clone(defaultTargets)
	}
	targets := make([]bench.Target, len(s.doc.Targets))
	for i, t := range s.doc.Targets {
		targets[i] = bench.Target(t.value)
	}
	return targets
}

// RequiredMetrics returns the metrics without which a machine cannot run the
// suite.
func (s *Suite) RequiredMetrics() []bench.Metric {
	var metrics []bench.Metric
	for _, m := range s.doc.Metrics.Required {
		metrics = append(metrics, bench.Metric(m.value))
	}
	return metrics
}

// Exact reports whether a metric has no noise, by its kind or by the suite's declaration, the same for all lines: any
// change counts.
func (s *Suite) Exact(metric bench.Metric) bool {
	_, unit := metric.Split()
	return metric.Exact() || slices.ContainsFunc(s.doc.Metrics.Exact, func(m text) bool { return m.value == string(unit) })
}

// Aggregation names the function that reduces a test case's values to one.
type Aggregation string

const (
	AggregateMin    Aggregation = "min"
	AggregateMedian Aggregation = "median"
	AggregateMean   Aggregation = "mean"
	AggregateMax    Aggregation = "max"
)

var aggregations = []string{string(AggregateMin), string(AggregateMedian), string(AggregateMean), string(AggregateMax)}

// Aggregation returns the suite's aggregation of a metric, the same for all lines. The
// default is the best value: the minimum, or the maximum if higher is better.
func (s *Suite) Aggregation(metric bench.Metric) Aggregation {
	_, unit := metric.Split()
	if a, ok := s.doc.Metrics.Aggregate.get(string(unit)); ok {
		return Aggregation(a.value)
	}
	if metric.Direction() == bench.HigherIsBetter {
		return AggregateMax
	}
	return AggregateMin
}

// Category returns a benchmark's category; primary if the suite does not have
// it.
func (s *Suite) Category(benchmark string) bench.Category {
	if b := s.benchmark(benchmark); b != nil {
		if c, err := bench.ParseCategory(b.Category.value); err == nil { // checked when the suite was read
			return c
		}
	}
	return bench.Primary
}

// Kind returns a benchmark's kind; empty if the suite does not have it.
func (s *Suite) Kind(benchmark string) bench.JobKind {
	if b := s.benchmark(benchmark); b != nil {
		return s.kind(b)
	}
	return ""
}

// MinSize returns the smallest size class of a collector for a benchmark.
func (s *Suite) MinSize(benchmark string) bench.SizeClass {
	if b := s.benchmark(benchmark); b != nil {
		return max(1, bench.SizeClass(b.MinSize.value))
	}
	return 1
}

// Benchmarks returns the names of all benchmarks, in the suite's order.
func (s *Suite) Benchmarks() []string {
	names := make([]string, len(s.doc.Benchmarks))
	for i := range s.doc.Benchmarks {
		names[i] = s.doc.Benchmarks[i].Name.value
	}
	return names
}

// Profiles returns the names of all profiles, in the suite's order.
func (s *Suite) Profiles() []string { return s.doc.Profiles.names() }

// Backends returns the names of all backends, in the suite's order.
func (s *Suite) Backends() []string { return s.doc.Backends.names() }

// Sets returns the names of the suite's named selections, in the suite's order.
func (s *Suite) Sets() []string { return s.doc.Sets.names() }

// Scenarios returns the names of all scenarios, in display order.
func (s *Suite) Scenarios() []string {
	names := map[string]bool{}
	collect := func(scenarios named[scenario]) {
		for _, e := range scenarios {
			names[e.name] = true
		}
	}
	if p := s.doc.Procedures.Compiletime; p != nil {
		collect(p.Scenarios)
	}
	for i := range s.doc.Benchmarks {
		collect(s.doc.Benchmarks[i].Scenarios)
	}
	return slices.SortedFunc(maps.Keys(names), bench.CompareScenarios)
}

func (s *Suite) benchmark(name string) *benchmark {
	for i := range s.doc.Benchmarks {
		if s.doc.Benchmarks[i].Name.value == name {
			return &s.doc.Benchmarks[i]
		}
	}
	return nil
}

// kind returns a benchmark's kind, else that of the only procedure, else
// runtime: the program itself is measured.
func (s *Suite) kind(b *benchmark) bench.JobKind {
	switch p := s.doc.Procedures; {
	case b.Kind.given():
		return bench.JobKind(b.Kind.value)
	case p.Compiletime != nil:
		return bench.KindCompileTime
	}
	return bench.KindRuntime
}

// procedure returns the procedure of a kind; empty if the suite has none.
func (s *Suite) procedure(kind bench.JobKind) *procedure {
	p := s.doc.Procedures.Runtime
	if kind == bench.KindCompileTime {
		p = s.doc.Procedures.Compiletime
	}
	if p == nil {
		return &procedure{}
	}
	return p
}

// scenarios returns the scenarios of a benchmark: those of its procedure, then
// its own.
func (s *Suite) scenarios(b *benchmark) []string {
	names := s.procedure(s.kind(b)).Scenarios.names()
	for _, name := range b.Scenarios.names() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// oneOf returns the valid name that equals name, ignoring case, or an error
// that lists the valid ones.
func oneOf(what, name string, valid []string) (string, error) {
	for _, v := range valid {
		if strings.EqualFold(v, name) {
			return v, nil
		}
	}
	list := "the suite has none"
	if len(valid) > 0 {
		list = "the suite has " + strings.Join(valid, ", ")
	}
	return "", fmt.Errorf("%w: unknown %s %q; %s", bench.ErrInvalid, what, name, list)
}
