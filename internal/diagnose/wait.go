package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
)

// waits lists the reasons that hold an open job without a run: first those that hold all
// such jobs, then the jobs before it, then its collectors.
func (c JobCase) waits(now time.Time) []string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	switch {
	case len(c.Waiters) == 0:
		add("no request waits for it any more, so that it is not started; the next reconciliation ends it")
	case !slices.ContainsFunc(c.Waiters, func(w Waiter) bool { return w.InTurn }):
		add("request %s has not had its turn; 'benchloom explain %s' says what it waits for", c.Waiters[0].ID, c.Waiters[0].ID)
	}
	queued := c.Status == bench.JobQueued
	if len(c.Inputs) > 0 {
		words = append(words, InputWords(c.Inputs))
	}
	if c.Pause != nil && queued {
		words = append(words, c.Pause.Words(c.Project))
	}
	if c.Stranded != "" {
		words = append(words, c.Stranded)
	}
	if account := c.Account.counting(c.Stranded != ""); queued && account.Full() {
		words = append(words, account.Words())
	}
	if queued {
		words = append(words, c.before()...)
	} else {
		add("it was handed out to task queue %s, and has waited there for an idle collector since %s", c.TaskQueue, clock(c.readySince()))
	}
	if len(c.Queue.Earlier) > 0 {
		add("jobs of %s go first: they are of an earlier level than %d", list(c.Queue.Earlier), c.Queue.Level)
	}
	if c.Account.FirstLevel > c.Queue.OwnLevel && c.Account.Name != "" {
		add("no job of account %s gets a level before %d", c.Account.Name, c.Account.FirstLevel)
	}
	if c.AffinityUntil.After(now) {
		add("collectors that have its cache directories go first until %s; then any other that may run it", clock(c.AffinityUntil))
	}
	return words
}

// InputWords says what a job waits for.
func InputWords(missing []graphset.Missing) string {
	first := missing[0]
	text := fmt.Sprintf("it needs job %s", first.Job)
	if first.Name != "" {
		text = "it needs node " + first.Name
	}
	if more := len(missing) - 1; more > 0 {
		text += " and " + count(more, "other")
	}
	switch text += ", which "; {
	case first.Ended():
		return text + fmt.Sprintf("ended as %s; another run that ends as this one needs releases it, see 'benchloom retrigger'", first.Status)
	case first.Service:
		return text + "the service carries out, or a person answers; 'benchloom graph show' says what it waits for"
	}
	return text + fmt.Sprintf("%s not ended; 'benchloom explain %s' says why", verb(len(missing), "has", "have"), first.Job)
}

// before says which jobs go before a waiting one.
func (c JobCase) before() []string {
	q := c.Queue
	switch {
	case q.More:
		return []string{fmt.Sprintf("%d or more jobs of its queue go before it at %s", q.Before, c.TaskQueue)}
	case q.Before > 0:
		return []string{fmt.Sprintf("%s of its queue %s before it at %s", count(q.Before, "job"), verb(q.Before, "goes", "go"), c.TaskQueue)}
	case q.HandedOut > 0:
		return []string{fmt.Sprintf("it is the next of its queue to be handed out at %s, where %s already %s for an idle collector",
			c.TaskQueue, count(q.HandedOut, "job of it", "jobs of it"), verb(q.HandedOut, "waits", "wait"))}
	}
	return []string{fmt.Sprintf("it is the next of its queue to be handed out at %s", c.TaskQueue)}
}

// readySince returns the time since which the job waits for a collector: its hand-out, or
// the end of its last run.
func (c JobCase) readySince() time.Time {
	since := c.HandedOut
	for _, r := range c.Runs {
		if r.Finished.After(since) {
			since = r.Finished
		}
	}
	return since
}

// verdict says why a collector does not take an open job now.
func (c JobCase) verdict(one Collector, run *Run, now time.Time) CollectorVerdict {
	v := CollectorVerdict{Name: one.Name, State: one.State, Carries: one.Run, WhyNot: []string{}}
	add := func(format string, args ...any) { v.WhyNot = append(v.WhyNot, fmt.Sprintf(format, args...)) }
	v.WhyNot = append(v.WhyNot, one.Lacks...)
	if len(one.Lacks) == 0 && !slices.Contains(one.TaskQueues, c.TaskQueue) {
		add("it takes jobs from %s, not from %s", strings.Join(one.TaskQueues, " and "), c.TaskQueue)
	}
	v.Able = len(v.WhyNot) == 0
	if run != nil && run.Collector == one.Name && one.Run == run.ID {
		v.Able, v.WhyNot = true, []string{}
		return v
	}
	switch one.State {
	case bench.CollectorOffline:
		add("it is offline, and was last heard of %s ago", now.Sub(one.LastHeard).Truncate(time.Second))
	case bench.CollectorInactive, bench.CollectorDraining:
		if one.Stuck {
			add("it is set aside until it is started anew: %s", one.SetAside)
			break
		}
		if one.SetAside != "" {
			until := "its machine is quiet"
			if one.AwaitsCanary {
				until = "a canary passes"
			}
			add("it is set aside until %s: %s; 'benchloom collector activate %s' lets it take jobs all the same", until, one.SetAside, one.Name)
			break
		}
		add("it is %s; 'benchloom collector activate %s' lets it take jobs again", one.State, one.Name)
	}
	if one.Wanted != "" && one.Wanted != one.Version {
		add("it is out of date: version %s, %s is wanted", one.Version, one.Wanted)
	}
	if one.Run != "" {
		add("it is busy with run %s", one.Run)
	}
	if len(v.WhyNot) > 0 || run != nil {
		return v
	}
	if c.Status == bench.JobQueued {
		add("the job was not handed out yet")
	}
	if beside := c.beside(one); beside > 0 {
		add("%s under way beside it on host %s: it takes a job only while that fits the host's memory", count(beside, "job is", "jobs are"), one.Host)
	}
	return v
}

// beside counts the jobs in other slots of a collector's host.
func (c JobCase) beside(one Collector) int {
	n := 0
	for _, other := range c.Collectors {
		if one.Host != "" && other.Host == one.Host && other.Run != "" {
			n++
		}
	}
	return n
}

// count writes a number with its noun, whose plural may be given.
func count(n int, noun ...string) string {
	if n == 1 {
		return "1 " + noun[0]
	}
	if len(noun) == 1 {
		noun = append(noun, noun[0]+"s")
	}
	return fmt.Sprintf("%d %s", n, noun[1])
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// shownNames bounds the number of names in a sentence.
const shownNames = 5

func list(names []string) string {
	names = slices.SortedFunc(slices.Values(names), cmp.Compare)
	if more := len(names) - shownNames; more > 0 {
		names = append(names[:shownNames:shownNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Turn says in one line what an open job without a run waits for, judged by its status and
// task queue.
func Turn(status bench.JobStatus, taskQueue string) string {
	where := "pool " + taskQueue
	if bench.IsSet(taskQueue) {
		where = "the set of collectors that can run it, " + taskQueue
	}
	if status == bench.JobQueued {
		return "its turn at " + where
	}
	return "an idle collector of " + where
}
