package fairshare

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
)

// Any stands for every account that has no limits of its own, and for all
// branches.
const Any = "*"

// AccountLimit is what an account may have at once, and how far forward its jobs may go.
type AccountLimit struct {
	Account string `json:"account" yaml:"account" doc:"Whom it is for; *: every account without limits of its own."`
	Branch  string `json:"branch,omitempty" yaml:"branch" doc:"Of which branch's jobs first_level speaks; * or left out: all."`
	// MaxRunning and MaxQueued count jobs over all task queues; nil: no limit.
	MaxRunning *int `json:"max_running,omitempty" yaml:"max_running" doc:"Jobs that may be under way at once; left out: any number."`
	MaxQueued  *int `json:"max_queued,omitempty" yaml:"max_queued" doc:"Jobs that may wait at once; left out: any number."`
	FirstLevel int  `json:"first_level,omitempty" yaml:"first_level" doc:"No job gets a level before this one, 1 to 5; left out: 1."`
}

// Checked is the limit with its defaults.
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

// CheckBranch refuses what no branch is called.
func CheckBranch(branch string) error {
	if len(branch) > 255 || branch == Any || checkAccount(branch) != nil {
		return fmt.Errorf("%w: branch %q; use the branch's name, of at most 255 bytes without white space", bench.ErrInvalid, branch)
	}
	return nil
}

// Limits are those of some accounts, and of [Any].
type Limits []AccountLimit

// Of is the limit that is in force for an account over all branches: its own, else
// that of [Any].
func (ls Limits) Of(account string) AccountLimit {
	return ls.at(account, Any)
}

// FirstLevel is before which no job of an account on a branch may go: the later
// one of what its branch and what all branches say.
func (ls Limits) FirstLevel(account, branch string) int {
	level := ls.at(account, Any).FirstLevel
	if branch != "" {
		level = max(level, ls.at(account, branch).FirstLevel)
	}
	return level
}

// at is the account's own limit for exactly this branch, else that of [Any].
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

// Level is the level of a job of an account and a branch in a queue: the queue's,
// but none that its limits keep it from.
func (ls Limits) Level(q Queue, account, branch string) int {
	return max(q.Level, ls.FirstLevel(account, branch))
}
