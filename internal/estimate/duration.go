package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Shape identifies jobs that differ only in the artifact they measure.
type Shape struct {
	Project string
	Kind    bench.JobKind
	Target  bench.Target
	Backend string
	Profile string
	// Cases identifies the test cases: equal text means the same test cases with as many iterations.
	Cases string
	// CaseCount is their number.
	CaseCount int
}

// kin returns the shape without what distinguishes test cases.
func (s Shape) kin() Shape {
	s.Cases, s.CaseCount = "", 0
	return s
}

// Pool identifies the collectors that a job may run on.
type Pool struct {
	SizeClass bench.SizeClass
	Name      string
}

// Past is a job that succeeded.
type Past struct {
	Shape Shape
	Pool  Pool
	// Took is the total duration of its runs, excluding the time between them.
	Took time.Duration
	// Ended is the time of its end. Only the latest [Recent] jobs count.
	Ended time.Time
}

// Recent is the number of latest comparable jobs that an estimate uses. Older ones say little about today's suite and
// machines.
const Recent = 10

// DefaultJob is assumed for a job if nothing like it has ever run.
const DefaultJob = 10 * time.Minute

// Basis is the evidence for an estimated duration, the best first.
type Basis int

const (
	// OwnHistory: the same job for other artifacts, in the same pool on the same size class.
	OwnHistory Basis = iota
	// SameClass: the same job on the same size class in other pools.
	SameClass
	// OtherClass: the same job on other size classes, without conversion.
	OtherClass
	// Kin: jobs of the same kind, target, backend and profile with other test cases, by the number of test cases.
	Kin
	// SameKind: the project's jobs of the same kind, by the number of test cases.
	SameKind
	// Assumed: nothing like it has run.
	Assumed
)

// String returns words that follow "1 job" or "2 jobs".
func (b Basis) String() string {
	switch b {
	case OwnHistory:
		return "by the same job's history in its pool"
	case SameClass:
		return "by the same job's history in other pools of its size class"
	case OtherClass:
		return "by the same job's history on other size classes"
	case Kin:
		return "by jobs with the same profile and other test cases"
	case SameKind:
		return "by the project's jobs of that kind"
	default:
		return fmt.Sprintf("assumed to take %.0f minutes, nothing like it has run", DefaultJob.Minutes())
	}
}

// History estimates the duration of jobs. Create one with [NewHistory].
type History struct {
	exact   map[exactKey]*typical
	class   map[classKey]*typical
	shape   map[Shape]*typical
	perCase map[Shape]*typical // by kin, per test case
	kind    map[kindKey]*typical
}

type exactKey struct {
	shape Shape
	pool  Pool
}

type classKey struct {
	shape Shape
	class bench.SizeClass
}

type kindKey struct {
	project string
	kind    bench.JobKind
}

// typical is the median of the latest durations, which a single job that hung for an hour does not move.
type typical struct {
	took   []time.Duration // latest first
	median time.Duration
}

func (t *typical) add(d time.Duration) {
	if len(t.took) < Recent {
		t.took = append(t.took, d)
	}
}

func (t *typical) settle() {
	sorted := slices.Sorted(slices.Values(t.took))
	middle := len(sorted) / 2
	t.median = sorted[middle]
	if len(sorted)%2 == 0 {
		t.median = sorted[middle-1] + (sorted[middle]-sorted[middle-1])/2
	}
}

// times returns the typical duration of n test cases if the median is that of one.
func (t *typical) times(n int) time.Duration {
	return time.Duration(int64(t.median) * int64(max(1, n)))
}

// NewHistory returns the history of jobs in any order. Negative durations count as zero.
func NewHistory(past []Past) *History {
	h := &History{
		exact: map[exactKey]*typical{}, class: map[classKey]*typical{}, shape: map[Shape]*typical{},
		perCase: map[Shape]*typical{}, kind: map[kindKey]*typical{},
	}
	past = slices.Clone(past)
	slices.SortFunc(past, func(a, b Past) int { // equal ends: the order of the input must not matter
		return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.Took, b.Took))
	})
	for _, p := range past {
		took := max(0, p.Took)
		note(h.exact, exactKey{p.Shape, p.Pool}, took)
		note(h.class, classKey{p.Shape, p.Pool.SizeClass}, took)
		note(h.shape, p.Shape, took)
		each := took / time.Duration(max(1, p.Shape.CaseCount))
		note(h.perCase, p.Shape.kin(), each)
		note(h.kind, kindKey{p.Shape.Project, p.Shape.Kind}, each)
	}
	settle(h.exact)
	settle(h.class)
	settle(h.shape)
	settle(h.perCase)
	settle(h.kind)
	return h
}

func note[K comparable](m map[K]*typical, key K, took time.Duration) {
	if m[key] == nil {
		m[key] = &typical{}
	}
	m[key].add(took)
}

func settle[K comparable](m map[K]*typical) {
	for _, t := range m {
		t.settle()
	}
}

// Job returns the expected total duration of a job and its basis.
func (h *History) Job(s Shape, at Pool) (time.Duration, Basis) {
	if t := h.exact[exactKey{s, at}]; t != nil {
		return t.median, OwnHistory
	}
	if t := h.class[classKey{s, at.SizeClass}]; t != nil {
		return t.median, SameClass
	}
	if t := h.shape[s]; t != nil {
		return t.median, OtherClass
	}
	if t := h.perCase[s.kin()]; t != nil {
		return t.times(s.CaseCount), Kin
	}
	if t := h.kind[kindKey{s.Project, s.Kind}]; t != nil {
		return t.times(s.CaseCount), SameKind
	}
	return DefaultJob, Assumed
}

// Rest returns the remaining time of a job that is expected to take the given time in total and has run for elapsed. An
// overdue job gets another tenth of its elapsed time: the longer it is overdue, the longer it may take.
func Rest(expected, elapsed time.Duration) time.Duration {
	elapsed = max(0, elapsed)
	return max(expected-elapsed, elapsed/10)
}

// Words describes the basis of the durations of several jobs: "3 jobs by …, 1 job by …".
func Words(bases []Basis) string {
	counts := map[Basis]int{}
	for _, b := range bases {
		counts[b]++
	}
	var parts []string
	for b := OwnHistory; b <= Assumed; b++ {
		switch n := counts[b]; n {
		case 0:
		case 1:
			parts = append(parts, "1 job "+b.String())
		default:
			parts = append(parts, fmt.Sprintf("%d jobs %s", n, b))
		}
	}
	return strings.Join(parts, ", ")
}
