package simulate

// Figures counts what happened in requests. Figures of several simulations can be added.
type Figures struct {
	// Requests is the number of requests, and Notified of those with a row that was called changed although nothing had
	// changed; FalseRows is the number of such rows.
	Requests  int `json:"requests"`
	Notified  int `json:"notified"`
	FalseRows int `json:"false_rows"`
	// Runs is the number of runs that the requests asked for, ExtraRuns of those that re-measuring added. MostExtraRuns is
	// the largest share of extra runs in a request.
	Runs          int     `json:"runs"`
	ExtraRuns     int     `json:"extra_runs"`
	MostExtraRuns float64 `json:"most_extra_runs"`
	// Suspicions is the number of rows that raised a suspicion, Remeasured of those that were measured in turns. Rows without
	// a real change among the latter ended Changed, NoDifference or Undecided. Stopped counts the undecided ones for which
	// the budget did not suffice.
	Suspicions   int `json:"suspicions"`
	Remeasured   int `json:"remeasured"`
	Changed      int `json:"changed"`
	NoDifference int `json:"no_difference"`
	Undecided    int `json:"undecided"`
	Stopped      int `json:"stopped"`
	// FormerRequests were compared by the former rule, too. FormerNotified and FormerRows count its relevant changes.
	FormerRequests int `json:"former_requests"`
	FormerNotified int `json:"former_notified"`
	FormerRows     int `json:"former_rows"`
	// Planted holds the figures of each kind of [Changes].
	Planted [kinds]Planted `json:"planted"`
}

// Planted counts what became of real changes.
type Planted struct {
	// Planted is the number of changes, Remeasured of those that were measured in turns within three commits, Found of those
	// that were called changed by then.
	Planted    int `json:"planted"`
	Remeasured int `json:"remeasured"`
	Found      int `json:"found"`
	// Changed, NoDifference and Undecided count the verdicts; an undecided change may get several. Stopped counts the
	// undecided ones for which the budget did not suffice.
	Changed      int `json:"changed"`
	NoDifference int `json:"no_difference"`
	Undecided    int `json:"undecided"`
	Stopped      int `json:"stopped"`
}

// Add adds figures.
func (f *Figures) Add(g Figures) {
	f.Requests += g.Requests
	f.Notified += g.Notified
	f.FalseRows += g.FalseRows
	f.Runs += g.Runs
	f.ExtraRuns += g.ExtraRuns
	f.MostExtraRuns = max(f.MostExtraRuns, g.MostExtraRuns)
	f.Suspicions += g.Suspicions
	f.Remeasured += g.Remeasured
	f.Changed += g.Changed
	f.NoDifference += g.NoDifference
	f.Undecided += g.Undecided
	f.Stopped += g.Stopped
	f.FormerRequests += g.FormerRequests
	f.FormerNotified += g.FormerNotified
	f.FormerRows += g.FormerRows
	for i := range f.Planted {
		f.Planted[i].add(g.Planted[i])
	}
}

func (p *Planted) add(q Planted) {
	p.Planted += q.Planted
	p.Remeasured += q.Remeasured
	p.Found += q.Found
	p.Changed += q.Changed
	p.NoDifference += q.NoDifference
	p.Undecided += q.Undecided
	p.Stopped += q.Stopped
}
