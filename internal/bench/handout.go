package bench

// HandOut is a job that was handed out: its workflow is to be started. Its turn in
// the task queue is that of its fairness key.
type HandOut struct {
	Request   RequestID
	Project   string
	Job       JobKey
	Kind      JobKind
	Tag       string
	Target    Target
	TaskQueue string
	Queue     string
	Turn      int // numbers the fairness keys of Queue in the task queue, from 0
	Weight    float64
	Priority  int
	SizeClass SizeClass
	Summary   string // what the job is, in words
	Ref       JobRef `db:"-"`
}
