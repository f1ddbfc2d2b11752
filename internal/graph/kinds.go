package graph

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Bounds of definitions.
const (
	maxChunks   = 1000
	maxSteps    = 100
	maxRetries  = 49                  // as in Taskcluster
	maxLimit    = 30 * 24 * time.Hour // of anything that waits
	maxTimeout  = 24 * time.Hour      // of a command, as of a whole job
	maxPattern  = 1000                // bytes
	maxListed   = 1000                // entries of other lists
	maxSentence = 1000                // bytes of a text for people
)

// Benchmark measures an artifact with test cases of a suite.
type Benchmark struct {
	// Tag names the artifact.
	Tag string `json:"tag"`
	// Versus is measured in turns with Tag; empty: none.
	Versus string       `json:"versus,omitempty"`
	Target bench.Target `json:"target"`
	// Suite is a suite's content hash; empty: the project's suite at the time.
	Suite string `json:"suite,omitempty"`
	// Selection says what is measured, or TestCases lists it. Neither: what the suite
	// measures by default.
	Selection bench.Selection  `json:"selection,omitzero"`
	TestCases []bench.TestCase `json:"test_cases,omitempty"`
	// Iterations overrides the suite's number; 0: does not.
	Iterations  int                `json:"iterations,omitempty"`
	Constraints *bench.Constraints `json:"constraints,omitempty"`
	// Chunks divides the test cases among machines; nil: one machine measures all.
	Chunks *Chunks `json:"chunks,omitempty"`
}

// Chunks bounds the number of parts that a job is divided into as machines ask for work.
type Chunks struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Kind returns [KindBenchmark].
func (Benchmark) Kind() Kind { return KindBenchmark }

func (b Benchmark) normal() (Definition, error) {
	if err := checkMeasured(b.Tag, b.Target, b.Suite); err != nil {
		return nil, err
	}
	if b.Versus != "" {
		if err := bench.CheckTag(b.Versus); err != nil {
			return nil, err
		}
	}
	switch {
	case b.Versus == b.Tag:
		return nil, invalid("versus", b.Versus, "an artifact cannot be measured in turns with itself")
	case b.Iterations < 0 || b.Selection.Iterations != 0:
		return nil, invalid("iterations", fmt.Sprint(cmp.Or(b.Selection.Iterations, b.Iterations)), "write a positive number beside the selection, or none")
	case len(b.TestCases) > 0 && !b.Selection.IsZero():
		return nil, invalid("selection", "", "name test cases or a selection, not both")
	case len(b.Selection.Targets) > 0:
		return nil, invalid("selection", string(b.Selection.Targets[0]), "a job has one target, beside the selection")
	}
	for _, tc := range b.TestCases {
		if err := checkTestCase(tc, b.Target); err != nil {
			return nil, err
		}
	}
	if c := b.Chunks; c != nil && (c.Min < 1 || c.Max < c.Min || c.Max > maxChunks) {
		return nil, invalid("chunks", fmt.Sprintf("%d to %d", c.Min, c.Max), fmt.Sprintf("use 1 to %d, the smaller number first", maxChunks))
	}
	var err error
	b.Constraints, err = constraints(b.Constraints)
	return b, err
}

// Build makes an artifact from a revision of a repository.
type Build struct {
	// Tag names the revision and the artifact.
	Tag    string       `json:"tag"`
	Target bench.Target `json:"target"`
	bench.BuildRecipe
	Constraints *bench.Constraints `json:"constraints,omitempty"`
}

// Kind returns [KindBuild].
func (Build) Kind() Kind { return KindBuild }

func (b Build) normal() (Definition, error) {
	if err := checkMeasured(b.Tag, b.Target, ""); err != nil {
		return nil, err
	}
	// The recipe's own rules are those for its parameters.
	command, err := json.Marshal(b.Command)
	if err != nil {
		return nil, fmt.Errorf("reading the command: %w", err)
	}
	pass, err := json.Marshal(append([]string{}, b.PassEnv...))
	if err != nil {
		return nil, fmt.Errorf("reading pass_env: %w", err)
	}
	parameters := map[string]string{
		"repository": b.Repository, "command": string(command), "pass_env": string(pass),
		"output":  cmp.Or(b.Output, "."),
		"timeout": (time.Duration(cmp.Or(b.TimeoutSeconds, int(bench.DefaultBuildTimeout/time.Second))) * time.Second).String(),
	}
	for _, variable := range b.Env {
		name, value, ok := strings.Cut(variable, "=")
		if _, twice := parameters["env."+name]; !ok || twice {
			return nil, invalid("environment variable", variable, "write NAME=value, each once")
		}
		parameters["env."+name] = value
	}
	if b.BuildRecipe, err = bench.ParseBuildRecipe(parameters, b.Tag, b.Target); err != nil {
		return nil, err
	}
	b.Constraints, err = constraints(b.Constraints)
	return b, err
}

// Command runs programs in order; the first that does not succeed ends the job.
type Command struct {
	Target bench.Target `json:"target"`
	// Checkouts are present before the first step.
	Checkouts []Checkout `json:"checkouts,omitempty"`
	Steps     []Step     `json:"steps"`
	Rules     Rules      `json:"rules,omitzero"`
	// Uploads names the files that are kept, as paths or globs.
	Uploads     []string           `json:"uploads,omitempty"`
	Constraints *bench.Constraints `json:"constraints,omitempty"`
}

// Checkout is the tree of a revision in a directory of its own.
type Checkout struct {
	// Repository is an absolute path or a URL of a git repository.
	Repository string `json:"repository"`
	Revision   string `json:"revision"`
	// Path is the place of the tree, relative to the job's directory; empty: there.
	Path string `json:"path,omitempty"`
}

// Step is one program of a command job, never given to a shell.
type Step struct {
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env,omitempty"`
	// Dir is relative to the job's directory.
	Dir string `json:"dir,omitempty"`
	// TimeoutSeconds bounds the step; 0: the project's limit.
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
}

// Rules tell from exit codes and output how a step ended. A matching pattern takes
// precedence over the exit code, and a retry pattern over a failure pattern.
type Rules struct {
	// Success lists exit codes; empty: 0 alone.
	Success []int `json:"success,omitempty"`
	// Failure lists patterns (RE2) of output lines that make a step fail whatever its
	// exit code.
	Failure []string `json:"failure,omitempty"`
	// RetryCodes and RetryPatterns tell ends after which the job is run again, at most
	// Retries times.
	RetryCodes    []int    `json:"retry_codes,omitempty"`
	RetryPatterns []string `json:"retry_patterns,omitempty"`
	Retries       int      `json:"retries,omitempty"`
}

// Kind returns [KindCommand].
func (Command) Kind() Kind { return KindCommand }

func (c Command) normal() (Definition, error) {
	if _, err := bench.ParseTarget(string(c.Target)); err != nil {
		return nil, err
	}
	if n := len(c.Steps); n == 0 || n > maxSteps {
		return nil, invalid("steps", fmt.Sprint(n), fmt.Sprintf("a command has 1 to %d", maxSteps))
	}
	for _, s := range c.Steps {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	var err error
	if c.Checkouts, err = checkouts(c.Checkouts, c.Target); err != nil {
		return nil, err
	}
	if c.Rules, err = c.Rules.normal(); err != nil {
		return nil, err
	}
	if c.Uploads, err = paths("upload", c.Uploads); err != nil {
		return nil, err
	}
	c.Constraints, err = constraints(c.Constraints)
	return c, err
}

func (s Step) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return invalid("step", "", "name a program")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !variableName.MatchString(name) {
			return invalid("environment variable", name, "use letters, digits and '_', not beginning with a digit")
		}
	}
	if s.Dir != "" {
		if _, err := paths("directory", []string{s.Dir}); err != nil {
			return err
		}
	}
	if s.TimeoutSeconds < 0 || s.TimeoutSeconds > int(maxTimeout/time.Second) {
		return invalid("timeout", fmt.Sprint(s.TimeoutSeconds), "use 1 second to 24 hours, or leave it out")
	}
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// revisionName matches names of one revision of a repository, not ranges and options of
// git.
var revisionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,254}$`)

// checkouts refuses two trees in one place: neither would be what it was in the
// repository.
func checkouts(list []Checkout, target bench.Target) ([]Checkout, error) {
	if len(list) > maxSteps {
		return nil, invalid("checkouts", fmt.Sprint(len(list)), fmt.Sprintf("use at most %d", maxSteps))
	}
	list = slices.Clone(list)
	for i := range list {
		c := &list[i]
		if !revisionName.MatchString(c.Revision) || strings.Contains(c.Revision, "..") {
			return nil, invalid("revision", c.Revision, "name a branch, a tag or a commit")
		}
		// The rules of a repository are those of builds.
		if _, err := bench.ParseBuildRecipe(map[string]string{"repository": c.Repository, "command": `["true"]`}, "", target); err != nil {
			return nil, err
		}
		where, err := paths("checkout", []string{cmp.Or(c.Path, ".")})
		if err != nil {
			return nil, err
		}
		c.Path = strings.TrimPrefix(where[0], ".")
		for _, other := range list[:i] {
			if other.Path == c.Path {
				return nil, invalid("checkout", cmp.Or(c.Path, "."), "two trees lie in one place; give each a path of its own")
			}
		}
	}
	return list, nil
}

func (r Rules) normal() (Rules, error) {
	for _, list := range [][]string{r.Failure, r.RetryPatterns} {
		if len(list) > maxSteps {
			return r, invalid("patterns", fmt.Sprint(len(list)), fmt.Sprintf("use at most %d", maxSteps))
		}
		for _, p := range list {
			if len(p) > maxPattern || p == "" {
				return r, invalid("pattern", shortened(p), fmt.Sprintf("use 1 to %d bytes", maxPattern))
			}
			if _, err := regexp.Compile(p); err != nil {
				return r, invalid("pattern", p, err.Error())
			}
		}
	}
	for _, list := range []*[]int{&r.Success, &r.RetryCodes} {
		*list = slices.Clone(*list)
		slices.Sort(*list)
		*list = slices.Compact(*list)
		for _, code := range *list {
			if code < 0 || code > 255 {
				return r, invalid("exit code", fmt.Sprint(code), "use 0 to 255")
			}
		}
	}
	succeeds := r.Success
	if len(succeeds) == 0 {
		succeeds = []int{0}
	}
	for _, code := range r.RetryCodes {
		if slices.Contains(succeeds, code) {
			return r, invalid("exit code", fmt.Sprint(code), "it cannot mean both success and retry")
		}
	}
	retries := len(r.RetryCodes)+len(r.RetryPatterns) > 0
	if r.Retries < 0 || r.Retries > maxRetries || retries != (r.Retries > 0) {
		return r, invalid("retries", fmt.Sprint(r.Retries), fmt.Sprintf("use 1 to %d together with exit codes or patterns that ask for one, else none of them", maxRetries))
	}
	return r, nil
}

// Profile runs one test case of an artifact once under a profiler.
type Profile struct {
	Tag    string       `json:"tag"`
	Target bench.Target `json:"target"`
	// Suite is a suite's content hash; empty: the project's suite at the time.
	Suite       string             `json:"suite,omitempty"`
	TestCase    bench.TestCase     `json:"test_case"`
	Profiler    string             `json:"profiler"`
	Constraints *bench.Constraints `json:"constraints,omitempty"`
}

// Kind returns [KindProfile].
func (Profile) Kind() Kind { return KindProfile }

func (p Profile) normal() (Definition, error) {
	if err := checkMeasured(p.Tag, p.Target, p.Suite); err != nil {
		return nil, err
	}
	if err := checkTestCase(p.TestCase, p.Target); err != nil {
		return nil, err
	}
	if err := bench.CheckParameter("profiler", p.Profiler); err != nil {
		return nil, err
	}
	var err error
	p.Constraints, err = constraints(p.Constraints)
	return p, err
}

// Compare compares an artifact with a baseline.
type Compare struct {
	Tag string `json:"tag"`
	// Baseline is a tag; empty: the baseline of the artifact's request.
	Baseline string `json:"baseline,omitempty"`
	// FailOnRegression makes a regression the node's failure.
	FailOnRegression bool `json:"fail_on_regression,omitempty"`
}

// Kind returns [KindCompare].
func (Compare) Kind() Kind { return KindCompare }

func (c Compare) normal() (Definition, error) {
	if err := bench.CheckTag(c.Tag); err != nil {
		return nil, err
	}
	if c.Baseline == c.Tag {
		return nil, invalid("baseline", c.Baseline, "an artifact is not compared with itself")
	}
	if c.Baseline != "" {
		if err := bench.CheckTag(c.Baseline); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Notify tells people about an artifact, where they read of it anyway.
type Notify struct {
	Tag string `json:"tag"`
	// Text is said beside the outcome; may be empty.
	Text string `json:"text,omitempty"`
}

// Kind returns [KindNotify].
func (Notify) Kind() Kind { return KindNotify }

func (n Notify) normal() (Definition, error) {
	if err := bench.CheckTag(n.Tag); err != nil {
		return nil, err
	}
	return n, sentence("text", n.Text)
}

// SignOff waits until a person with the right agrees or refuses.
type SignOff struct {
	// Question is put to the person.
	Question string `json:"question"`
	// Accounts may answer; empty: all who may operate the project.
	Accounts []string `json:"accounts,omitempty"`
	// LimitSeconds is the time to answer in, from when the inputs are met. When it has
	// passed, the node and what depends on its success are skipped.
	LimitSeconds int `json:"limit_seconds"`
}

// Kind returns [KindSignOff].
func (SignOff) Kind() Kind { return KindSignOff }

func (s SignOff) normal() (Definition, error) {
	if strings.TrimSpace(s.Question) == "" {
		return nil, invalid("question", s.Question, "say what is agreed to")
	}
	if err := sentence("question", s.Question); err != nil {
		return nil, err
	}
	if err := checkLimit(s.LimitSeconds); err != nil || s.LimitSeconds == 0 {
		return nil, cmp.Or(err, invalid("limit", "0", "a sign-off has a time limit of 1 second to 30 days"))
	}
	if len(s.Accounts) > maxListed {
		return nil, invalid("accounts", fmt.Sprint(len(s.Accounts)), fmt.Sprintf("use at most %d", maxListed))
	}
	s.Accounts = slices.Clone(s.Accounts)
	slices.Sort(s.Accounts)
	s.Accounts = slices.Compact(s.Accounts)
	for _, a := range s.Accounts {
		if err := bench.CheckQueue(bench.UserQueue + a); err != nil {
			return nil, invalid("account", a, "name an account as its queue is named after 'user:'")
		}
	}
	return s, nil
}

func checkMeasured(tag string, target bench.Target, suite string) error {
	if err := bench.CheckTag(tag); err != nil {
		return err
	}
	if _, err := bench.ParseTarget(string(target)); err != nil {
		return err
	}
	if suite != "" && (len(suite) != 64 || strings.Trim(suite, "0123456789abcdef") != "") {
		return invalid("suite", suite, "a suite's content hash has 64 hexadecimal digits")
	}
	return nil
}

func checkTestCase(tc bench.TestCase, target bench.Target) error {
	if _, err := bench.NewTestCase(tc); err != nil {
		return err
	}
	if tc.Target != target {
		return invalid("test case", tc.String(), "a job's test cases are of its target, "+string(target))
	}
	return nil
}

func checkLimit(seconds int) error {
	if seconds < 0 || seconds > int(maxLimit/time.Second) {
		return invalid("limit", (time.Duration(seconds) * time.Second).String(), "use 1 second to 30 days")
	}
	return nil
}

func sentence(kind, s string) error {
	if len(s) > maxSentence {
		return invalid(kind, shortened(s), fmt.Sprintf("use at most %d bytes", maxSentence))
	}
	return nil
}

// paths returns clean paths within a job's directory.
func paths(kind string, list []string) ([]string, error) {
	if len(list) > maxListed {
		return nil, invalid(kind, fmt.Sprint(len(list)), fmt.Sprintf("use at most %d", maxListed))
	}
	out := slices.Clone(list)
	for i, p := range out {
		clean := path.Clean(p)
		if p == "" || path.IsAbs(p) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(p, "\\") {
			return nil, invalid(kind, p, "write a path within the job's directory")
		}
		out[i] = clean
	}
	return out, nil
}

// constraints returns the constraints as they are encoded; nil: none.
func constraints(c *bench.Constraints) (*bench.Constraints, error) {
	if c == nil {
		return nil, nil
	}
	if c.MemoryBytes < 0 {
		return nil, invalid("memory", fmt.Sprint(c.MemoryBytes), "use a positive number of bytes, or leave it out")
	}
	read, err := c.Spec().Read()
	if err != nil {
		return nil, err
	}
	read.MemoryBytes, read.Canary = c.MemoryBytes, c.Canary
	if read.IsZero() && !read.Canary {
		return nil, nil
	}
	return &read, nil
}
