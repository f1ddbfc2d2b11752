package fairshare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Any, as an account, means every account without its own limits, and as a branch all
// branches.
const Any = "*"

// AccountLimit bounds the number of jobs that an account may have at once, and their
// level.
type AccountLimit struct {
	Account string `json:"account" yaml:"account" doc:"Account; *: every account without limits of its own."`
	Branch  string `json:"branch,omitempty" yaml:"branch" doc:"Branch whose jobs first_level bounds; * or left out: all."`
	// MaxRunning and MaxQueued count jobs over all task queues; nil: no limit.
	MaxRunning *int `json:"max_running,omitempty" yaml:"max_running" doc:"Jobs that may be under way at once; left out: any number."`
	MaxQueued  *int `json:"max_queued,omitempty" yaml:"max_queued" doc:"Jobs that may wait at once; left out: any number."`
	FirstLevel int  `json:"first_level,omitempty" yaml:"first_level" doc:"No job gets a level before this one, 1 to 5; left out: 1."`
}

// Checked returns the limit with defaults filled in. The error wraps
// [bench.ErrInvalid].
func (l AccountLimit) Checked() (AccountLimit, error) {
	if l.Branch == "" {
		l.Branch = Any
	}
	if l.FirstLevel == 0 {
		l.FirstLevel = FirstLevel
	}
	who := fmt.Sprintf("the limit of account %q", l.Account)
	if l.Branch != Any {
		who += fmt.Sprintf(" on branch %q", l.Branch)
	}
	switch {
	case l.Account == "":
		return l, fmt.Errorf("%w: a limit without an account; name one, or * for all that have none of their own", bench.ErrInvalid)
	case l.Branch != Any && (l.MaxRunning != nil || l.MaxQueued != nil):
		return l, fmt.Errorf("%w: %s has max_running or max_queued, which count over all branches; leave them out, or the branch", bench.ErrInvalid, who)
	case l.MaxRunning != nil && (*l.MaxRunning < 1 || *l.MaxRunning > maxJobs):
		return l, fmt.Errorf("%w: %s has max_running %d; use 1 to %d, or leave it out for any number", bench.ErrInvalid, who, *l.MaxRunning, maxJobs)
	case l.MaxQueued != nil && (*l.MaxQueued < 1 || *l.MaxQueued > maxJobs):
		return l, fmt.Errorf("%w: %s has max_queued %d; use 1 to %d, or leave it out for any number", bench.ErrInvalid, who, *l.MaxQueued, maxJobs)
	case l.FirstLevel < FirstLevel || l.FirstLevel > LastLevel:
		return l, fmt.Errorf("%w: %s has first_level %d; use %d (before all) to %d (after all)", bench.ErrInvalid, who, l.FirstLevel, FirstLevel, LastLevel)
	}
	if err := checkAccount(l.Account); err != nil {
		return l, err
	}
	if l.Branch != Any {
		return l, CheckBranch(l.Branch)
	}
	return l, nil
}

// maxJobs bounds limits that are numbers of jobs.
const maxJobs = 10_000_000

// CheckBranch refuses an invalid name of a branch. The error wraps [bench.ErrInvalid].
func CheckBranch(branch string) error {
	if len(branch) > 255 || branch == Any || checkAccount(branch) != nil {
		return fmt.Errorf("%w: branch %q; use the branch's name, of at most 255 bytes without white space", bench.ErrInvalid, branch)
	}
	return nil
}

// Limits holds the limits of some accounts, and those of [Any].
type Limits []AccountLimit

// Of returns an account's limit over all branches: its own, else that of [Any].
func (ls Limits) Of(account string) AccountLimit {
	return ls.at(account, Any)
}

// FirstLevel returns the earliest level of an account's jobs on a branch: the later
// one of the limits for that branch and for all branches.
func (ls Limits) FirstLevel(account, branch string) int {
	level := ls.at(account, Any).FirstLevel
	if branch != "" {
		level = max(level, ls.at(account, branch).FirstLevel)
	}
	return level
}

// at returns the account's own limit for exactly this branch, else that of [Any].
func (ls Limits) at(account, branch string) AccountLimit {
	found := AccountLimit{Account: account, Branch: branch, FirstLevel: FirstLevel}
	for _, l := range ls {
		if l.Branch != branch {
			continue
		}
		if l.Account == account {
			return l
		}
		if l.Account == Any {
			found = l
		}
	}
	return found
}

// Add returns the limits with those of more that have no equivalent yet.
func (ls Limits) Add(more Limits) Limits {
	for _, l := range more {
		if !slices.ContainsFunc(ls, func(have AccountLimit) bool { return have.Account == l.Account && have.Branch == l.Branch }) {
			ls = append(ls, l)
		}
	}
	return ls
}

// Unlimited means that any number of jobs is allowed.
const Unlimited = math.MaxInt

// Load counts the jobs that an account has under way, over all task queues.
type Load struct {
	// Jobs counts the jobs that were handed out and have not ended, or were cancelled
	// and still run.
	Jobs int
	// Stranded counts those of them that wait in a task queue without a live collector.
	// They may wait for long, so they do not count against jobs elsewhere.
	Stranded int
}

// Free returns how many more jobs the account may have under way in a task queue.
// served reports whether the task queue has a live collector; without one, stranded
// jobs count too, so that no more jobs gather there than the limit allows.
func (l AccountLimit) Free(under Load, served bool) int {
	switch {
	case l.MaxRunning == nil:
		return Unlimited
	case served:
		return max(0, *l.MaxRunning-under.Jobs+under.Stranded)
	}
	return max(0, *l.MaxRunning-under.Jobs)
}

// MayWait returns a [TooManyWaiting] if an account has too many jobs waiting. waiting
// counts all of them, written those just added.
func (l AccountLimit) MayWait(account string, waiting, written int) error {
	if l.MaxQueued == nil || waiting <= *l.MaxQueued {
		return nil
	}
	return &TooManyWaiting{Account: account, Most: *l.MaxQueued, Waiting: waiting - written, More: written}
}

// TooManyWaiting reports more waiting jobs than the account's limit allows.
type TooManyWaiting struct {
	Account string
	// Most is the limit, Waiting the number of jobs already waiting, More the number to
	// be added.
	Most, Waiting, More int
}

func (e *TooManyWaiting) Error() string {
	return fmt.Sprintf("%d jobs of %s wait already, and at most %d may (max_queued), so %d more cannot be added; wait until some have run, cancel some, or ask an administrator for a larger limit",
		e.Waiting, e.Account, e.Most, e.More)
}

// checkAccount refuses an invalid name of an account.
func checkAccount(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: account %q holds white space or a control character", bench.ErrInvalid, name)
	}
	return nil
}
