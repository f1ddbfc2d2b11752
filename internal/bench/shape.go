package bench

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Shape names what makes jobs alike as far as their need of a machine goes,
// whatever their artifact: jobs of one shape share what is learned about size
// classes. Sources, artifacts and timeouts are not part of it, so that a changed
// program under test keeps its history.
type Shape string

// ShapeParts is what a [Shape] is a hash of, and what it is in words.
type ShapeParts struct {
	Target Target `json:"target"`
	// Key was given by its submitter; then nothing below counts.
	Key string `json:"key,omitempty"`
	// Of a command.
	Argv []string          `json:"argv,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	// Of a job of a suite.
	Kind      JobKind  `json:"kind,omitempty"`
	Profile   string   `json:"profile,omitempty"`
	Backend   string   `json:"backend,omitempty"`
	TestCases []string `json:"test_cases,omitempty"`
	// Artifacts is how many are measured in turns; 0: one alone.
	Artifacts int `json:"artifacts,omitempty"`
	// Iterations multiply what either of them takes.
	Iterations int `json:"iterations,omitempty"`
}

// CommandShape is the shape of an ad-hoc command.
func CommandShape(target Target, argv []string, env map[string]string, iterations int) ShapeParts {
	return ShapeParts{Target: target, Argv: argv, Env: env, Iterations: max(1, iterations)}
}

// SuiteShape is the shape of a job of a suite: of its test cases, in any order.
func SuiteShape(kind JobKind, target Target, cases []TestCase, iterations int) ShapeParts {
	parts := ShapeParts{Target: target, Kind: kind, Iterations: iterations}
	for _, tc := range cases {
		parts.Profile, parts.Backend = tc.Profile, tc.Backend
		parts.TestCases = append(parts.TestCases, strings.Join([]string{tc.Benchmark, tc.Profile, tc.Scenario, tc.Backend}, "/"))
	}
	slices.Sort(parts.TestCases)
	return parts
}

// InTurns is the shape of jobs that measure the same for two artifacts in turns: one
// takes twice as long.
func (p ShapeParts) InTurns() ShapeParts {
	p.Artifacts = 2
	return p
}

var shapeKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,99}$`)

// CheckShapeKey refuses a key that cannot name a shape.
func CheckShapeKey(key string) error {
	if !shapeKey.MatchString(key) {
		return invalid("shape", key, "use 1 to 100 letters, digits or ._/:@+- , beginning with a letter or digit")
	}
	return nil
}

// Shape is the hash: 16 lower-case letters and digits.
func (p ShapeParts) Shape() Shape {
	if p.Key != "" {
		p = ShapeParts{Target: p.Target, Key: p.Key}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("bench: encoding a shape: %v", err)) // plain strings: cannot happen
	}
	sum := sha256.Sum256(text)
	return Shape(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}
