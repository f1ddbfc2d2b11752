package bench

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// RequestID is the short ID of a request, for example "r7k2m4q9xt2". Every command
// that takes a request accepts it.
type RequestID string

const requestIDLetters = "abcdefghjkmnpqrstuvwxyz23456789" // no letters that look like digits

// NewRequestID draws an ID of about 49 random bits.
func NewRequestID(random io.Reader) (RequestID, error) {
	letters, err := drawn(random)
	if err != nil {
		return "", fmt.Errorf("drawing a request ID: %w", err)
	}
	return RequestID("r" + letters), nil
}

// drawn returns ten letters or digits.
func drawn(random io.Reader) (string, error) {
	var raw [16]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", err
	}
	var letters []byte
	for _, b := range raw[:10] {
		letters = append(letters, requestIDLetters[int(b)%len(requestIDLetters)])
	}
	return string(letters), nil
}

// ParseRequestID parses a request's ID.
func ParseRequestID(s string) (RequestID, error) {
	if len(s) != 11 || s[0] != 'r' || strings.Trim(s[1:], requestIDLetters) != "" {
		return "", invalid("request ID", s, "a request ID is r and ten letters or digits, as printed when it was created")
	}
	return RequestID(s), nil
}

// TokenID is the public name of a token, for example "t7k2m4q9xt2". It gives access to
// nothing.
type TokenID string

// NewTokenID draws an ID of about 49 random bits.
func NewTokenID(random io.Reader) (TokenID, error) {
	letters, err := drawn(random)
	if err != nil {
		return "", fmt.Errorf("drawing a token's ID: %w", err)
	}
	return TokenID("t" + letters), nil
}

// ParseTokenID parses a token's ID. The IDs of token files use other digits than drawn
// ones.
func ParseTokenID(s string) (TokenID, error) {
	if len(s) != 11 || s[0] != 't' || strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		if strings.HasPrefix(s, "blm_") {
			s = "blm_…" // a secret is shown nowhere
		}
		return "", invalid("token ID", s, "a token's ID is t and ten letters or digits, as 'benchloom token list' shows it; it is not the secret, which begins with blm_")
	}
	return TokenID(s), nil
}

// JobKey identifies a job within its project: a hash of its [JobIdentity], so that
// expanding a request twice gives the same jobs.
type JobKey string

// JobIdentity holds everything that tells a job from others. A [JobKey] is its hash.
// internal/plan fills it in.
type JobIdentity struct {
	// Request is set for ad-hoc jobs, since equal commands of two people are two jobs,
	// for jobs that measure in turns, and for later generations. Other jobs are shared by
	// all requests that need them.
	Request RequestID `json:"request,omitempty"`
	Project string    `json:"project"`
	Tag     string    `json:"tag"`
	// Versus is the tag that is measured in turns with Tag.
	Versus    string     `json:"versus,omitempty"`
	Target    Target     `json:"target"`
	Backend   string     `json:"backend"`
	Profile   string     `json:"profile"`
	Kind      JobKind    `json:"kind"`
	Suite     string     `json:"suite"` // content hash; for a build, its key
	TestCases []TestCase `json:"test_cases"`
	SizeClass SizeClass  `json:"size_class"`
	// Pool is set for a job that must run on one pool: a parent's job, a job of a
	// benchmark set, or one of a later generation.
	Pool string `json:"pool,omitempty"`
	// Line is set for a job of a batch, since two equal lines are two jobs.
	Line int `json:"line,omitempty"`
	// Profiler is set for a profile job.
	Profiler string `json:"profiler,omitempty"`
	// Node is set for a job of a graph from a template, since two equal nodes are two jobs.
	Node string `json:"node,omitempty"`
	// Chunk is set for a part of a divided job.
	Chunk int `json:"chunk,omitempty"`
	// Generation is raised by a rerun that must measure again.
	Generation int `json:"generation"`
}

// Key returns the job's key: 16 lower-case letters and digits. The order of the test
// cases does not matter.
func (id JobIdentity) Key() JobKey {
	id.TestCases = slices.Clone(id.TestCases)
	slices.SortFunc(id.TestCases, CompareTestCases)
	text, err := json.Marshal(id)
	if err != nil {
		panic(fmt.Sprintf("bench: encoding a job identity: %v", err)) // plain strings and numbers: cannot happen
	}
	sum := sha256.Sum256(text)
	return JobKey(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// ParseJobKey parses a job's key.
func ParseJobKey(s string) (JobKey, error) {
	if len(s) != 16 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", invalid("job", s, "a job's key is 16 letters and digits, as printed by 'benchloom status REQUEST'")
	}
	return JobKey(s), nil
}

// RunID identifies one attempt at a job: the job's key, a dash, and eight
// hexadecimal digits.
type RunID string

// NewRunID derives a run's ID from Temporal's identifiers of the attempt, so that an
// attempt that requests its start twice gets the same run.
func NewRunID(job JobKey, workflowRun, activity string, attempt int32) RunID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", workflowRun, activity, attempt))
	return RunID(string(job) + "-" + hex.EncodeToString(sum[:4]))
}

// ParseRunID parses a run's ID.
func ParseRunID(s string) (RunID, error) {
	key, suffix, ok := strings.Cut(s, "-")
	if _, err := ParseJobKey(key); err != nil || !ok || len(suffix) != 8 || strings.Trim(suffix, "0123456789abcdef") != "" {
		return "", invalid("run ID", s, "a run's ID is a job's key, a dash and eight hexadecimal digits")
	}
	return RunID(s), nil
}

// Job returns the key of the run's job.
func (id RunID) Job() JobKey {
	key, _, _ := strings.Cut(string(id), "-")
	return JobKey(key)
}
