package admission

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/estimate"
)

// PolicyOf returns the policy of a project's configuration, by default [Spec].
func PolicyOf(c bench.ProjectConfig) Policy {
	if c.Queue.Policy == string(Upstream) {
		return Upstream
	}
	return Spec
}

// RequestsOf returns the fields of each request that the order depends on. The tag that a request waits for becomes its
// parent.
func RequestsOf(open []bench.Request) []Request {
	out := make([]Request, len(open))
	for i, r := range open {
		out[i] = Request{
			ID: r.ID, Tag: r.Tag, Type: r.Type, ParentTag: r.WaitsFor, PR: r.PR, CreatedAt: r.CreatedAt, Status: r.Status,
		}
		if r.CommitDate != nil {
			out[i].CommitDate = *r.CommitDate
		}
	}
	return out
}

// Expected holds the estimated start and end of a request.
type Expected struct {
	// Start and End are zero if they are not known. For a request in progress, Start is its admission.
	Start, End time.Time
	// Basis names the basis of Start and End, or says why they are not known.
	Basis string
}

// Entry is a request with its position in the order and its estimates.
type Entry struct {
	Request  bench.Request
	Position Position
	Expected Expected
}

// DefaultRequest is the assumed duration of a request in a project that has measured nothing yet. It is the duration
// that rustc-perf's status page assumes.
const DefaultRequest = time.Hour

// View returns the open requests of a project in their order, each with its estimates.
func View(s Snapshot, c bench.ProjectConfig, now time.Time) []Entry {
	b := newBuilder(s)
	positions := Order(RequestsOf(s.Open), s.Done, PolicyOf(c))
	rows, holders := make(map[bench.RequestID]bench.Request, len(s.Open)), make(map[string]bench.RequestID, len(s.Open))
	for _, r := range s.Open {
		rows[r.ID] = r
		if r.Tag != "" {
			holders[r.Tag] = r.ID
		}
	}
	input := estimate.Input{Now: now, Slots: c.Slots(), Collectors: b.live}
	ours := make(map[bench.RequestID]bool, len(positions))
	bases := make([]string, len(positions))
	for i, p := range positions {
		r := rows[p.Request.ID]
		ours[r.ID] = true
		request := estimate.Request{ID: string(r.ID), Admitted: r.Status == bench.InProgress}
		parent := holders[r.WaitsFor]
		switch {
		case request.Admitted, p.Admissible:
		case p.Group == GroupWaiting, p.InCycle, parent == "":
			request.Unforeseeable = p.Blocked
		default:
			request.Parent = string(parent)
		}
		bases[i] = b.fill(&request, r)
		input.Requests = append(input.Requests, request)
	}
	input.Others = b.others(ours)
	entries := make([]Entry, len(positions))
	for i, f := range estimate.Forecasts(input) {
		r := rows[positions[i].Request.ID]
		entries[i] = Entry{Request: r, Position: positions[i], Expected: expected(s, r, f, bases[i])}
	}
	return entries
}

// ExpectAdHoc returns the estimates of an ad-hoc request, which starts without admission.
func ExpectAdHoc(s Snapshot, r bench.Request, now time.Time) Expected {
	b := newBuilder(s)
	request := estimate.Request{ID: string(r.ID), NoSlot: true, Admitted: r.Status == bench.InProgress}
	basis := b.fill(&request, r)
	input := estimate.Input{
		Now: now, Collectors: b.live, Requests: []estimate.Request{request}, Others: b.others(map[bench.RequestID]bool{r.ID: true}),
	}
	return expected(s, r, estimate.Forecasts(input)[0], basis)
}

// MaxForeseen bounds the open jobs that estimates consider; later ones are too far away to
// predict.
const MaxForeseen = 5000

// Unforeseen returns the estimates of a request whose jobs are written while more jobs are
// open than estimates consider: some of its own may be beyond those. It needs no
// snapshot.
func Unforeseen(r bench.Request, open int) (e Expected, found bool) {
	if r.ExpandedAt == nil || open <= MaxForeseen {
		return Expected{}, false
	}
	e.Basis = fmt.Sprintf("not known: %d jobs are open, more than can be foreseen", open)
	if r.AdmittedAt != nil {
		e.Start = *r.AdmittedAt
	}
	return e, true
}

func expected(s Snapshot, r bench.Request, f estimate.Forecast, basis string) Expected {
	e, found := Unforeseen(r, len(s.Jobs)+s.LeftOut)
	if !found {
		e = Expected{Start: f.Start, End: f.End, Basis: basis}
	}
	if r.AdmittedAt != nil {
		e.Start = *r.AdmittedAt
	}
	if f.Why != "" {
		e.Basis = "not known: " + f.Why
	}
	return e
}

// builder turns a snapshot into the input of estimates.
type builder struct {
	snapshot Snapshot
	history  *estimate.History
	live     map[string]int // collectors, by task queue
	open     map[bench.RequestID][]int
	taken    map[int]bool // jobs already counted for an earlier request
	last     usual        // a batch of alike jobs asks for it each time
}

// usual caches the duration of the shape estimated last.
type usual struct {
	known bool
	shape JobShape
	took  time.Duration
	basis estimate.Basis
}

// usually returns how long jobs of a shape take.
func (b *builder) usually(shape JobShape) (time.Duration, estimate.Basis) {
	if !b.last.known || b.last.shape != shape {
		took, basis := b.history.Job(shapeOf(shape))
		b.last = usual{known: true, shape: shape, took: took, basis: basis}
	}
	return b.last.took, b.last.basis
}

func newBuilder(s Snapshot) *builder {
	b := &builder{snapshot: s, live: make(map[string]int, len(s.Pools)), open: map[bench.RequestID][]int{}, taken: map[int]bool{}}
	past := make([]estimate.Past, len(s.Past))
	for i, p := range s.Past {
		shape, pool := shapeOf(p.JobShape)
		past[i] = estimate.Past{Shape: shape, Pool: pool, Took: seconds(p.Seconds), Ended: p.CompletedAt}
	}
	b.history = estimate.NewHistory(past)
	for _, p := range s.Pools {
		b.live[p.TaskQueue()] += p.Live
	}
	for i, j := range s.Jobs {
		for _, id := range j.Waiters {
			b.open[id] = append(b.open[id], i)
		}
	}
	return b
}

func shapeOf(j JobShape) (estimate.Shape, estimate.Pool) {
	return estimate.Shape{
		Project: j.Project, Kind: j.Kind, Target: j.Target, Backend: j.Backend, Profile: j.Profile, Cases: j.CasesDigest, CaseCount: j.CaseCount,
	}, estimate.Pool{SizeClass: j.SizeClass, Name: j.Pool}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fill adds a request's present and expected jobs, and returns the basis of their durations in words.
func (b *builder) fill(request *estimate.Request, r bench.Request) string {
	var bases []estimate.Basis
	for _, i := range b.open[r.ID] {
		if b.taken[i] {
			continue
		}
		b.taken[i] = true
		job, basis := b.job(b.snapshot.Jobs[i])
		request.Jobs = append(request.Jobs, job)
		bases = append(bases, basis)
	}
	switch {
	case r.ExpandedAt != nil && len(bases) == 0:
		return "none of its jobs is left, or others wait for the same ones"
	case r.ExpandedAt != nil:
		return estimate.Words(bases)
	case r.Type == bench.AdHoc:
		request.Alone = estimate.DefaultJob
		return "assumed to take ten minutes: its jobs are not written yet"
	}
	example, found := b.example(r)
	if !found {
		request.Alone = DefaultRequest
		return "assumed to take an hour: the project has measured nothing yet"
	}
	known := false
	var jobs []estimate.Job
	for _, shape := range example.Jobs {
		took, basis := b.usually(shape)
		jobs = append(jobs, estimate.Job{TaskQueue: shape.TaskQueue, Rest: took})
		bases = append(bases, basis)
		known = known || basis != estimate.Assumed
	}
	if !known && example.Seconds > 0 { // its jobs all failed, or it had none
		request.Alone = seconds(example.Seconds)
		return fmt.Sprintf("as long as request %s (%s) took", example.Request, example.Tag)
	}
	request.Jobs = append(request.Jobs, jobs...)
	return fmt.Sprintf("%s; its jobs are taken to be those of request %s (%s)", estimate.Words(bases), example.Request, example.Tag)
}

// job returns an open job with its remaining time.
func (b *builder) job(j OpenJob) (estimate.Job, estimate.Basis) {
	took, basis := b.usually(j.JobShape)
	return estimate.Job{TaskQueue: j.TaskQueue, Rest: estimate.Rest(took, seconds(j.Seconds)), Running: j.Status == bench.JobInProgress}, basis
}

// example returns the most similar of the last requests: same selection and type, else same selection, else same type,
// else any.
func (b *builder) example(r bench.Request) (Example, bool) {
	best, score := -1, -1
	want := selectionOf(r.Selection)
	for i, p := range b.snapshot.Examples {
		n := 0
		if selectionOf(p.Selection) == want {
			n += 2
		}
		if p.Type == r.Type {
			n++
		}
		if n > score { // the latest first
			best, score = i, n
		}
	}
	if best < 0 {
		return Example{}, false
	}
	return b.snapshot.Examples[best], true
}

func selectionOf(s any) string {
	text, err := json.Marshal(s)
	if err != nil { // cannot happen: strings and numbers
		return ""
	}
	return string(text)
}

// others returns the open jobs that none of the requests waits for.
func (b *builder) others(ours map[bench.RequestID]bool) []estimate.Job {
	jobs := make([]estimate.Job, 0, len(b.snapshot.Jobs))
	for _, j := range b.snapshot.Jobs {
		mine := false
		for _, id := range j.Waiters {
			mine = mine || ours[id]
		}
		if !mine {
			job, _ := b.job(j)
			jobs = append(jobs, job)
		}
	}
	return jobs
}
