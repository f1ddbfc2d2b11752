package bench

// HandOut is a job that was handed out and whose workflow must be started. Its
// fairness key decides its turn in the task queue.
type HandOut struct {
	Request   RequestID
	Project   string
	Job       JobKey
	Kind      JobKind
	Tag       string
	Target    Target
	TaskQueue string
	Queue     string
	Rerun     int // how often the job was asked for again
	Turn      int // numbers the fairness keys of Queue in the task queue, from 0
	Weight    float64
	Priority  int
	SizeClass SizeClass
	Dispatch  Dispatch // secret of the job's present dispatch
	Summary   string   // the job in words
	Ref       JobRef   `db:"-"`
}
