package diagnose

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
)

// JobCase holds the facts about a job.
type JobCase struct {
	Key       bench.JobKey
	Project   string
	Status    bench.JobStatus
	Message   string // why it ended as it did
	TaskQueue string
	SizeClass bench.SizeClass
	Needs     bench.ConstraintSpec // constraints on its collectors
	// HandedOut is the time of its hand-out; zero: it still waits in the record.
	HandedOut time.Time
	// AffinityUntil ends its wait for collectors with its caches; zero: it does not wait
	// for them.
	AffinityUntil time.Time
	// Waiters lists the requests that wait for it.
	Waiters []Waiter
	// Inputs lists what it needs and does not have.
	Inputs  []graphset.Missing
	Pause   *Pause // of its project's queue; nil: it is not paused
	Queue   Queue
	Account Account
	// Stranded describes the failover when no live collector serves its task queue;
	// empty: one does.
	Stranded   string
	Collectors []Collector
	Runs       []Run
	Size       Size
}

// Waiter is a request that waits for a job. InTurn is set when its jobs may run.
type Waiter struct {
	ID     bench.RequestID
	InTurn bool
}

// Pause of a project's queue.
type Pause struct {
	Who, Why string
	Since    time.Time
}

// Words says why the jobs of a paused project are held, and what ends the pause.
func (p Pause) Words(project string) string {
	return fmt.Sprintf("project %s was paused by %s: %s; 'benchloom queue resume %s' resumes it", project, p.Who, p.Why, project)
}

// Queue is the job's queue (fairness key) as it stands at the job's task queue.
type Queue struct {
	Name   string
	Class  string  // weighted or strict
	Weight float64 // of a weighted queue, relative to the others
	Level  int     // 1 goes first; the later of the queue's and the account's
	// OwnLevel is the queue's configured level.
	OwnLevel int
	// Share is a weighted queue's part of the weights of all queues with open jobs at
	// the task queue, 0 to 1; nil: the queue is strict.
	Share *float64
	// Before counts the queue's waiting jobs that go before this one; Waiting, HandedOut
	// and Running count all jobs of the queue at the task queue.
	Before, Waiting, HandedOut, Running int
	// More is set when Before is where counting ended.
	More bool
	// Earlier lists the queues with jobs of an earlier level at the task queue, Beside
	// those with jobs of the same level.
	Earlier, Beside []string
}

// Account whose limits apply to the job.
type Account struct {
	Name string
	// MaxRunning bounds the number of its jobs UnderWay at once; nil: unlimited. Stranded
	// jobs wait where no collector lives; they count only for other stranded jobs.
	MaxRunning         *int
	UnderWay, Stranded int
	// FirstLevel is the earliest level of its jobs, from 1.
	FirstLevel int
}

// counting returns the account as it counts for a job, stranded or not.
func (a Account) counting(stranded bool) Account {
	if stranded {
		a.UnderWay, a.Stranded = a.UnderWay+a.Stranded, 0
	}
	return a
}

// Full reports whether no further job of the account may start.
func (a Account) Full() bool { return a.MaxRunning != nil && a.UnderWay >= *a.MaxRunning }

// Words says why the jobs of a full account are held.
func (a Account) Words() string {
	text := fmt.Sprintf("account %s has %s under way, as many as its limit max_running %d allows", a.Name, count(a.UnderWay, "job"), *a.MaxRunning)
	if n := a.Stranded; n > 0 {
		text += fmt.Sprintf("; %s in task queues without a live collector %s not count", count(n, "waiting job"), verb(n, "does", "do"))
	}
	return text
}

// Collector is a registered collector, seen from a job.
type Collector struct {
	Name  string
	State bench.CollectorState
	Run   bench.RunID // under way; empty: none
	// Host is the shared host of a slot; empty: none.
	Host      string
	LastHeard time.Time // of its last heartbeat
	// SetAside is the reason for which it takes no jobs until its machine is quiet or, with
	// AwaitsCanary, a canary passes; empty: it was not set aside.
	SetAside     string
	AwaitsCanary bool
	// Stuck is set if instead it has to be started anew.
	Stuck   bool
	Version string
	// Wanted is the version that it should run; empty: any.
	Wanted     string
	TaskQueues []string // served by it
	// Lacks lists in words the job's constraints that it does not meet.
	Lacks []string
}

// JobExplanation explains the state of a job.
type JobExplanation struct {
	Job        bench.JobKey         `json:"job"`
	Project    string               `json:"project"`
	Status     bench.JobStatus      `json:"status"`
	Summary    string               `json:"summary" doc:"Where it stands, in a sentence."`
	Requests   []bench.RequestID    `json:"requests" doc:"Those that wait for it."`
	Waits      []string             `json:"waits" doc:"What it waits for, what holds it most first; empty when it runs or has ended."`
	TaskQueue  string               `json:"task_queue"`
	Needs      bench.ConstraintSpec `json:"needs,omitzero" doc:"What narrows where it runs."`
	Queue      *QueuePosition       `json:"queue,omitempty" doc:"Absent when it has ended."`
	Collectors []CollectorVerdict   `json:"collectors" doc:"Each registered collector, and why it does not take the job; empty when it has ended."`
	Size       SizeReasons          `json:"size"`
	Runs       []RunCost            `json:"runs" doc:"By number."`
	Cost       Cost                 `json:"cost"`
}

// QueuePosition gives a job's position in its queue, and the queue's among others.
type QueuePosition struct {
	Name      string   `json:"name"`
	Class     string   `json:"class" enum:"weighted,strict"`
	Weight    float64  `json:"weight,omitempty" doc:"Of a weighted queue, relative to the others."`
	Level     int      `json:"level" doc:"1 goes first."`
	Share     *float64 `json:"share,omitempty" doc:"Part of the weights of the weighted queues with open jobs at this task queue, 0 to 1."`
	Position  int      `json:"position,omitempty" doc:"Among the waiting jobs of its queue at this task queue, from 1; absent when it does not wait as a row, and when 10,000 or more go before it."`
	Waiting   int      `json:"waiting" doc:"Jobs of its queue there that are rows."`
	HandedOut int      `json:"handed_out" doc:"Those that wait in Temporal."`
	Running   int      `json:"running"`
	Earlier   []string `json:"earlier" doc:"Queues with jobs there that go first."`
	Beside    []string `json:"beside" doc:"Queues with jobs there that share with it."`
}

// CollectorVerdict says why a collector does not take a job.
type CollectorVerdict struct {
	Name    string               `json:"name"`
	State   bench.CollectorState `json:"state"`
	Able    bool                 `json:"able" doc:"It can run the job, now or later."`
	WhyNot  []string             `json:"why_not" doc:"Why it does not take it now; empty when it runs it or would take it."`
	Carries bench.RunID          `json:"carries,omitempty" doc:"The run that it carries out."`
}

// Job explains the state of a job.
func Job(c JobCase, now time.Time) JobExplanation {
	e := JobExplanation{
		Job: c.Key, Project: c.Project, Status: c.Status, TaskQueue: c.TaskQueue, Needs: c.Needs, Waits: []string{}, Requests: []bench.RequestID{},
		Collectors: []CollectorVerdict{}, Runs: costs(c.Runs, now), Size: c.size(),
	}
	for _, w := range c.Waiters {
		e.Requests = append(e.Requests, w.ID)
	}
	e.Cost = total(e.Runs)
	if !c.Status.Open() {
		e.Summary = ended(c)
		return e
	}
	e.Queue = c.position()
	run := c.running()
	for _, one := range c.Collectors {
		e.Collectors = append(e.Collectors, c.verdict(one, run, now))
	}
	if run != nil {
		e.Summary = fmt.Sprintf("run %s is under way on collector %s since %s", run.ID, run.Collector, clock(run.Started))
		return e
	}
	e.Waits = c.waits(now)
	e.Summary = "it waits: " + e.Waits[0]
	return e
}

func ended(c JobCase) string {
	text := "it has ended: " + string(c.Status)
	if c.Message != "" {
		text += ", " + c.Message
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

func (c JobCase) running() *Run {
	for i := range c.Runs {
		if c.Runs[i].Outcome == bench.RunRunning {
			return &c.Runs[i]
		}
	}
	return nil
}

func (c JobCase) position() *QueuePosition {
	q := c.Queue
	p := &QueuePosition{
		Name: q.Name, Class: q.Class, Level: q.Level, Share: q.Share, Waiting: q.Waiting, HandedOut: q.HandedOut, Running: q.Running,
		Earlier: append([]string{}, q.Earlier...), Beside: append([]string{}, q.Beside...),
	}
	if q.Share != nil {
		p.Weight = q.Weight
	}
	if c.Status == bench.JobQueued && !q.More {
		p.Position = q.Before + 1
	}
	return p
}
