package bench

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrInvalid is wrapped by every error about a value that this package refuses.
var ErrInvalid = errors.New("invalid value")

func invalid(kind, value, rule string) error {
	return fmt.Errorf("%w: %s %q: %s", ErrInvalid, kind, value, rule)
}

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)
	tagPattern    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9+])?$`)
	targetPattern = regexp.MustCompile(`^[a-z0-9_]+(-[a-z0-9_.]+){1,3}$`)
	casePattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:+/ -]{0,126}[A-Za-z0-9._+-])?$`)
)

const nameRule = "use 1 to 64 lower-case letters, digits, '.', '_' or '-', beginning and ending with a letter or digit"

// CheckName refuses an invalid name of a project, pool, collector, suite, benchmark
// set or queue. These names are parts of workflow IDs and task queue names, so they
// contain neither slashes nor white space.
func CheckName(kind, s string) error {
	if !namePattern.MatchString(s) {
		return invalid(kind, s, nameRule)
	}
	return nil
}

// Prefixes of the names of default queues: a submitter's and a project's.
const (
	UserQueue    = "user:"
	ProjectQueue = "project:"
)

// maxQueueName is the length of a fairness key in Temporal, in bytes.
const maxQueueName = 64

// CheckQueue refuses an invalid name of a queue. Valid ones are user:ACCOUNT,
// project:NAME, and any name that [CheckName] accepts.
func CheckQueue(s string) error {
	account, ofUser := strings.CutPrefix(s, UserQueue)
	switch {
	case strings.TrimPrefix(account, ProjectQueue) == "":
		return invalid("queue", s, "use user:ACCOUNT, project:NAME, or a name such as single-build")
	case len(s) > maxQueueName:
		return invalid("queue", s, fmt.Sprintf("use at most %d bytes", maxQueueName))
	case ofUser && strings.ContainsFunc(account, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return invalid("queue", s, "an account holds no white space and no control characters")
	case ofUser:
		return nil
	}
	return CheckName("queue", strings.TrimPrefix(s, ProjectQueue))
}

// CheckTag refuses an invalid tag of an artifact, a version or a commit's SHA.
func CheckTag(s string) error {
	if !tagPattern.MatchString(s) {
		return invalid("tag", s, "use 1 to 128 letters, digits, '.', '_', '+' or '-', beginning with a letter or digit")
	}
	return nil
}

// CheckParameter refuses an invalid name of a benchmark or one of its parameters
// (profile, scenario, backend).
func CheckParameter(kind, s string) error {
	if !casePattern.MatchString(s) {
		return invalid(kind, s, "use 1 to 128 letters, digits, spaces or any of . _ : + / -, beginning with a letter or digit")
	}
	return nil
}

// Target is the platform that an artifact runs on, as a target tuple of compilers such
// as x86_64-unknown-linux-gnu.
type Target string

// ParseTarget parses a target tuple of two to four parts.
func ParseTarget(s string) (Target, error) {
	if len(s) > 64 || !targetPattern.MatchString(s) {
		return "", invalid("target", s, "write a target tuple such as x86_64-unknown-linux-gnu")
	}
	return Target(s), nil
}

// HostTarget returns the target tuple for Go's names of an operating system and an
// architecture, for example ("linux", "amd64").
func HostTarget(goos, goarch string) (Target, error) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "riscv64": "riscv64gc", "ppc64le": "powerpc64le", "s390x": "s390x"}[goarch]
	system := map[string]string{"linux": "unknown-linux-gnu", "darwin": "apple-darwin", "windows": "pc-windows-msvc"}[goos]
	if arch == "" || system == "" {
		return "", invalid("machine", goos+"/"+goarch, "no target tuple is known for it; name one with --target")
	}
	return Target(arch + "-" + system), nil
}

// Arch returns the first part of the tuple, for example x86_64.
func (t Target) Arch() string {
	arch, _, _ := strings.Cut(string(t), "-")
	return arch
}

func (t Target) String() string { return string(t) }

// SizeClass is the size of a collector relative to the others of its target: a
// positive integer. On one machine it is the number of cores.
type SizeClass int

// MaxSizeClass bounds size classes, so that every record and name can hold one.
const MaxSizeClass = 4096

// NewSizeClass refuses anything below 1 and above [MaxSizeClass].
func NewSizeClass(n int) (SizeClass, error) {
	if n < 1 || n > MaxSizeClass {
		return 0, invalid("size class", fmt.Sprint(n), fmt.Sprintf("a size class is a whole number from 1 to %d", MaxSizeClass))
	}
	return SizeClass(n), nil
}

// Pool names collectors that are interchangeable: same target, same size
// class, same hardware.
type Pool struct {
	Target    Target    `json:"target"`
	SizeClass SizeClass `json:"size_class"`
	Name      string    `json:"pool"`
}

// NewPool checks the parts of a pool's identity.
func NewPool(target Target, class SizeClass, name string) (Pool, error) {
	if _, err := ParseTarget(string(target)); err != nil {
		return Pool{}, err
	}
	if _, err := NewSizeClass(int(class)); err != nil {
		return Pool{}, err
	}
	if err := CheckName("pool", name); err != nil {
		return Pool{}, err
	}
	if setPattern.MatchString(name) {
		return Pool{}, invalid("pool", name, "names of this form are reserved for sets of collectors; choose another")
	}
	return Pool{Target: target, SizeClass: class, Name: name}, nil
}

// TaskQueue returns the Temporal task queue from which the pool's collectors take
// jobs: bench/<target>/<size>/<pool>.
func (p Pool) TaskQueue() string {
	return fmt.Sprintf("bench/%s/%d/%s", p.Target, p.SizeClass, p.Name)
}
