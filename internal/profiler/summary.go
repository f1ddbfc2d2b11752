package profiler

// Bounds of a [Summary]. The agent leaves out what exceeds them and counts it as dropped; the receiver refuses it.
const (
	// MaxCommands is the largest number of measured commands that a summary names.
	MaxCommands = 10_000
	// MaxSummarized is the largest number of pairs of a mean and a maximum, all series together.
	MaxSummarized = 100_000
	// MaxLabelBytes is the longest name of an artifact or of a test case.
	MaxLabelBytes = 500
)

// Summary sums up a whole attempt, including the time when its agent was not active. The last upload of an attempt carries it; an
// attempt without one was cut off.
type Summary struct {
	// Commands are the measured commands, in ascending order of their batch indexes.
	Commands []Command `json:"commands,omitempty"`
	// Series has each system series at most once.
	Series []SeriesSummary `json:"series,omitempty"`
	// Phases has each name at most once.
	Phases []PhaseSummary `json:"phases,omitempty"`
}

// Command says which measurement a batch index stands for.
type Command struct {
	Batch int `json:"batch"`
	// Artifact is the tag of the measured artifact, Case names the test case; both as the job writes them.
	Artifact string `json:"artifact,omitempty"`
	Case     string `json:"case,omitempty"`
	// Iteration counts from 1; 0 means none. WarmUp marks an iteration whose result is not kept.
	Iteration int  `json:"iteration,omitempty"`
	WarmUp    bool `json:"warm_up,omitempty"`
}

// SeriesSummary sums up a system series: one mean and one maximum for each measured command. The three slices are equally long.
type SeriesSummary struct {
	Series
	Unit Unit `json:"unit"`
	// Batches are the indexes of the commands, ascending.
	Batches []int `json:"batches"`
	// Mean of a counter is its growth during the command divided by the command's time. Max is the largest such value of a second
	// of it, or the mean of a shorter command. Other values have a reading each second.
	Mean []float64 `json:"mean"`
	Max  []float64 `json:"max"`
}

// PhaseSummary sums up all phases of one name.
type PhaseSummary struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// TotalSeconds is the sum of the durations, LongestSeconds the largest one.
	TotalSeconds   float64 `json:"total_seconds"`
	LongestSeconds float64 `json:"longest_seconds"`
}
