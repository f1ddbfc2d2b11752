package plan

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/suite"
)

// Fleet lists the registered collectors, by name.
type Fleet []placement.Collector

// Facts are what was read before a request is planned.
type Facts struct {
	Request bench.Request // with its ID
	Config  bench.ProjectConfig
	Fleet   Fleet
	// Suite of the project and its content hash; nil for commands.
	Suite     *suite.Suite
	SuiteHash string
	// Series tells on which size class the series of a test case lives. One without a
	// series is absent.
	Series map[bench.TestCase]bench.SizeClass
	// Learned tells on which size class jobs of a shape went last, as far as
	// [Facts.Shapes] asks. One of which nothing is known is absent.
	Learned map[bench.Shape]bench.SizeClass
}

// Optional tells which targets block neither the request nor its children.
func (f Facts) Optional() map[bench.Target]bool {
	out := make(map[bench.Target]bool)
	for _, t := range f.Config.OptionalTargets {
		out[t] = true
	}
	return out
}

// Queue names the queue in which jobs of the request wait that name none themselves.
func (f Facts) Queue() string { return f.queue("") }

func (f Facts) queue(named string) string {
	r := f.Request
	if named == "" {
		named = r.Queue
	}
	return fairshare.OfRequest(named, r.Submitter, r.Project, r.Type, f.Config)
}

// pin is the size class that a person has chosen for the request's jobs: its own, else
// the project's; 0: none.
func (f Facts) pin() bench.SizeClass {
	if f.Request.SizeClass != 0 {
		return f.Request.SizeClass
	}
	return f.Config.Size.Pin()
}

// constraints of the request's jobs. The error says that its own and its project's, which
// may have changed since, exclude each other; the project's come with it.
func (f Facts) constraints() (bench.Constraints, error) {
	all, err := f.narrowed(f.Request.Constraints)
	if err != nil {
		all, _ = f.narrowed(nil)
	}
	return all, err
}

// narrowed joins the project's constraints with others.
func (f Facts) narrowed(own *bench.Constraints) (bench.Constraints, error) {
	all, err := f.Config.Narrowed(own)
	if err != nil {
		return all, fmt.Errorf("project %s and the request: %w", f.Request.Project, err)
	}
	return all, nil
}

// DefaultPriority is Temporal's middle level.
const DefaultPriority = 3

// site is where a job goes, and the constraints that led there.
type site struct {
	placement.Place
	constraints bench.Constraints
}

// job completes a job of the request with its turn, its location and its key.
func (f Facts) job(made bench.Job, at site) bench.PlannedJob {
	r := f.Request
	made.Turn = bench.Turn{
		Queue: f.queue(made.Queue), Weight: 1, Priority: DefaultPriority,
		Submitter: r.Submitter, Branch: r.Branch, RequestCreated: r.CreatedAt,
	}
	j := bench.PlannedJob{Job: made}
	j.PutAt(at.Place.Place)
	if at.Affine {
		j.AffinityFor = f.Config.Affinity()
	}
	if !at.constraints.IsZero() {
		j.Constraints = &at.constraints
	}
	j.Key = f.key(j.Job)
	return j
}
