package fairshare

import (
	"fmt"
	"slices"
	"strings"
)

// Levels of priority: no job of a level starts while one of an earlier level waits.
const (
	FirstLevel  = 1
	SharedLevel = 3 // of all weighted queues
	LastLevel   = 5
)

// Job holds the fields of a job that decide its level.
type Job struct{ Queue, Submitter, Branch string }

// Rules are the queues and limits in force.
type Rules struct {
	Queues Queues
	Limits Limits
}

// Level returns the level of a job: its queue's, or a later one if a limit of its
// account requires it.
func (r Rules) Level(j Job) int {
	return max(r.Queues.Of(j.Queue).Level, r.Limits.FirstLevel(j.Submitter, j.Branch))
}

// Earliest returns the earliest level of the jobs in each queue.
func (r Rules) Earliest(jobs []Job) map[string]int {
	levels := make(map[string]int)
	for _, j := range jobs {
		level := r.Level(j)
		if first, known := levels[j.Queue]; !known || level < first {
			levels[j.Queue] = level
		}
	}
	return levels
}

// Share returns a weighted queue's share, 0 to 1, of the weights of all weighted queues
// that these jobs are in. It is nil if none of the jobs is in the queue, or if jobs of
// weighted queues have different levels: the earlier ones then get everything.
func (r Rules) Share(queue string, jobs []Job) *float64 {
	weights, level := make(map[string]float64), 0
	for _, j := range jobs {
		q := r.Queues.Of(j.Queue)
		if q.Class != Weighted {
			continue
		}
		if own := r.Level(j); level == 0 {
			level = own
		} else if level != own {
			return nil
		}
		weights[j.Queue] = q.Weight
	}
	own, present := weights[queue]
	if !present {
		return nil
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	share := own / sum
	return &share
}

// MayAsk returns a [TooEarly] if the job has an earlier level than the account's own
// jobs of that branch may have. It keeps an account from passing its limit by asking
// for another account's job.
func (r Rules) MayAsk(account string, j Job) error {
	level := r.Level(j)
	if first := r.Limits.FirstLevel(account, j.Branch); first > level {
		return &TooEarly{Queue: j.Queue, Branch: j.Branch, Account: account, Level: level, First: first}
	}
	return nil
}

// TooEarly reports a priority above the account's cap.
type TooEarly struct {
	Queue, Branch, Account string
	// Level is the level that the jobs would have, First the earliest level that the
	// account's limits allow.
	Level, First int
}

func (e *TooEarly) Error() string {
	of := ""
	if e.Branch != "" {
		of = " on branch " + e.Branch
	}
	return fmt.Sprintf("jobs in queue %s go at level %d, but jobs of %s%s may go at level %d at the earliest (first_level of the account's limits); ask somebody without that limit, or submit the work anew",
		e.Queue, e.Level, e.Account, of, e.First)
}

// Starves returns the names of the queues that get nothing while q has work, sorted:
// those of later levels. It returns none for a weighted queue, which is in the middle
// by design.
func Starves(q Queue, all []Queue) []string {
	if q.Class != Strict {
		return nil
	}
	var names []string
	for _, other := range all {
		if other.Level > q.Level {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names
}

// shownNames bounds the number of names in a sentence.
const shownNames = 5

// Warning says which queues a queue can starve; empty: none.
func Warning(q Queue, all []Queue) string {
	names := Starves(q, all)
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), shownNames)], ", ")
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "while it has work, nothing of " + text + " starts"
}
