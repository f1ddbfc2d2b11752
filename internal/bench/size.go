package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SizePolicy decides on which size class a project's jobs run. Package sizeclass
// documents the numbers, with their ranges and the defaults for those left out.
type SizePolicy struct {
	// Policy is feedback (the default) or pinned:CLASS.
	Policy string `json:"policy,omitempty" yaml:"policy" doc:"feedback: the smallest size class that is good enough is learned; pinned:CLASS: all jobs run on that class. Empty: feedback." example:"pinned:4"`
	// Class pins the jobs as pinned:CLASS does.
	Class SizeClass `json:"class,omitempty" yaml:"class" minimum:"0" maximum:"4096" doc:"The same as pinned:CLASS; 0: not pinned."`
	// Stepwise lets a job that fails on a size class go to the next larger one instead
	// of the largest.
	Stepwise bool `json:"stepwise,omitempty" yaml:"stepwise" doc:"What fails on a size class goes to the next larger one; else straight to the largest."`

	Exponent          *float64 `json:"exponent,omitempty" yaml:"exponent" doc:"How much slower a smaller class may be: (largest/class)^exponent times the time on the largest; left out: 0.5."`
	TimeoutMultiplier *float64 `json:"timeout_multiplier,omitempty" yaml:"timeout_multiplier" doc:"By how much a job may exceed its acceptable time before it is killed; left out: 1.5."`
	Minimum           string   `json:"minimum,omitempty" yaml:"minimum" doc:"Acceptable for every job, and the time limit of the first run on a small class; left out: 10s."`
	FailureCache      string   `json:"failure_cache,omitempty" yaml:"failure_cache" doc:"How long jobs go straight to the largest class after a failure there; left out: 24h."`
	History           *int     `json:"history,omitempty" yaml:"history" doc:"Samples kept per class; left out: 32."`
	ProbeBudget       *float64 `json:"probe_budget,omitempty" yaml:"probe_budget" doc:"Share of core-seconds that probes of other classes may cost; left out: 0.1."`
	ProbeExpiry       string   `json:"probe_expiry,omitempty" yaml:"probe_expiry" doc:"After how long, beyond its time limit, a probe of which nothing is heard blocks no other; left out: 1h."`
	MaximumTimeout    string   `json:"maximum_timeout,omitempty" yaml:"maximum_timeout" doc:"Longest timeout of an iteration that a command may ask for; at most 24h; left out: 2h. Suites say their own."`
	DefaultTimeout    string   `json:"default_timeout,omitempty" yaml:"default_timeout" doc:"Timeout of an iteration of a command that asks for none; left out: 30m."`
	Recheck           *int     `json:"recheck,omitempty" yaml:"recheck" doc:"After how many runs a class that was found unsuitable may be tried once more; left out: 200."`
}

const (
	sizeFeedback = "feedback"
	sizePinned   = "pinned:"
)

// Pin returns the size class to which all jobs are pinned; 0: none.
func (p SizePolicy) Pin() SizeClass {
	if text, pinned := strings.CutPrefix(p.Policy, sizePinned); pinned {
		if n, err := strconv.Atoi(text); err == nil {
			return SizeClass(n)
		}
	}
	return p.Class
}

func (p SizePolicy) check() error {
	for name, number := range map[string]*float64{"exponent": p.Exponent, "timeout_multiplier": p.TimeoutMultiplier, "probe_budget": p.ProbeBudget} {
		if number != nil && (math.IsNaN(*number) || math.IsInf(*number, 0)) {
			return invalid("size "+name, fmt.Sprint(*number), "write a number, or leave it out")
		}
	}
	const rule = "use feedback, or pinned: and a size class, such as pinned:4"
	switch text, pinned := strings.CutPrefix(p.Policy, sizePinned); {
	case pinned:
		n, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(n) != text {
			return invalid("size policy", p.Policy, rule)
		}
		if _, err := NewSizeClass(n); err != nil {
			return err
		}
		if p.Class != 0 && int(p.Class) != n {
			return invalid("size policy", p.Policy, "it differs from 'class'; keep one of them")
		}
	case p.Policy == sizeFeedback && p.Class != 0:
		return invalid("size policy", p.Policy, "it is pinned by 'class' as well; keep one of them")
	case p.Policy != "" && p.Policy != sizeFeedback:
		return invalid("size policy", p.Policy, rule)
	}
	if p.Class != 0 {
		if _, err := NewSizeClass(int(p.Class)); err != nil {
			return err
		}
	}
	return nil
}
