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

// Facts holds the inputs of planning a request.
type Facts struct {
	Request bench.Request // with its ID
	Config  bench.ProjectConfig
	Fleet   Fleet
	// Suite of the project and its content hash; nil for commands.
	Suite     *suite.Suite
	SuiteHash string
	// Series maps test cases to the size class of their series. A test case without one
	// is absent.
	Series map[bench.TestCase]bench.SizeClass
	// Learned maps the shapes of [Facts.Shapes] to the size class of their latest job. An
	// unknown shape is absent.
	Learned map[bench.Shape]bench.SizeClass
	// Node is the name of the graph's node that is planned; empty: none is.
	Node string
}

// Optional returns the targets that block neither the request nor its children.
func (f Facts) Optional() map[bench.Target]bool {
	out := make(map[bench.Target]bool)
	for _, t := range f.Config.OptionalTargets {
		out[t] = true
	}
	return out
}

// Queue names the queue of the request's jobs that name none themselves.
func (f Facts) Queue() string { return f.queue("") }

func (f Facts) queue(named string) string {
	r := f.Request
	if named == "" {
		named = r.Queue
	}
	return fairshare.OfRequest(named, r.Submitter, r.Project, r.Type, f.Config)
}

// pin returns the size class chosen by a person for the request's jobs: the request's,
// else the project's; 0: none.
func (f Facts) pin() bench.SizeClass {
	if f.Request.SizeClass != 0 {
		return f.Request.SizeClass
	}
	return f.Config.Size.Pin()
}

// constraints returns the constraints of the request's jobs. On error, the request's and the
// project's exclude each other, as the project may have changed; it then returns the project's.
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

// site is a job's location, and the constraints that led to it.
type site struct {
	placement.Place
	constraints bench.Constraints
}

// job completes a job of the request with its priority, location and key.
func (f Facts) job(made bench.Job, at site) bench.PlannedJob {
	r := f.Request
	if f.Node != "" && made.Build == nil {
		made.Name = f.Node
	}
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
