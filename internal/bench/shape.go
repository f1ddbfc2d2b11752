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

// Shape identifies jobs that are expected to need the same resources, whatever their
// artifact. Jobs of one shape share a history of size classes. Sources, artifacts and
// timeouts are not part of it, so that a changed program under test keeps its history.
type Shape string

// ShapeParts holds the parts of a [Shape], which is their hash.
type ShapeParts struct {
	Target Target `json:"target"`
	// Key was chosen by the submitter; if it is set, the fields below are ignored.
	Key string `json:"key,omitempty"`
	// Argv and Env are set for a command.
	Argv []string          `json:"argv,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	// Kind, Profile, Backend and TestCases are set for a suite's job.
	Kind      JobKind  `json:"kind,omitempty"`
	Profile   string   `json:"profile,omitempty"`
	Backend   string   `json:"backend,omitempty"`
	TestCases []string `json:"test_cases,omitempty"`
	// Artifacts is the number of artifacts measured in turns; 0: one alone.
	Artifacts int `json:"artifacts,omitempty"`
	// Iterations is the number of iterations; a suite's job may have 0, the suite's own.
	Iterations int `json:"iterations,omitempty"`
}

// CommandShape returns the shape of an ad-hoc command.
func CommandShape(target Target, argv []string, env map[string]string, iterations int) ShapeParts {
	return ShapeParts{Target: target, Argv: argv, Env: env, Iterations: max(1, iterations)}
}

// SuiteShape returns the shape of a suite's job. The order of the test cases does not
// matter.
func SuiteShape(kind JobKind, target Target, cases []TestCase, iterations int) ShapeParts {
	parts := ShapeParts{Target: target, Kind: kind, Iterations: iterations}
	for _, tc := range cases {
		parts.Profile, parts.Backend = tc.Profile, tc.Backend
		parts.TestCases = append(parts.TestCases, strings.Join([]string{tc.Benchmark, tc.Profile, tc.Scenario, tc.Backend}, "/"))
	}
	slices.Sort(parts.TestCases)
	return parts
}

// InTurns returns the shape of jobs that measure the same for two artifacts in turns,
// which takes twice as long.
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

// Shape returns the hash: 16 lower-case letters and digits.
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
