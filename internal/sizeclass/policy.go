package sizeclass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// ErrPolicy reports an invalid policy.
var ErrPolicy = errors.New("size policy")

// Policy is the operator's configuration of size classes. All fields are required;
// [Defaults] sets them.
type Policy struct {
	// Exponent x weighs speed against cost: a class twice as large must be 2^x
	// times as fast. Above 0, at most 1; at 1 only core-seconds count.
	Exponent float64 `json:"exponent"`
	// TimeoutMultiplier k: a run is ended after k acceptable times. 1 to 100.
	TimeoutMultiplier float64 `json:"timeout_multiplier"`
	// Minimum is the minimum acceptable time: no class is too slow for a job
	// that takes less than this there. It is also the timeout of the first run
	// on a small class.
	Minimum Duration `json:"minimum"`
	// FailureCache is the time during which jobs go straight to the largest
	// class after a failure there, unless one succeeds there earlier.
	FailureCache Duration `json:"failure_cache"`
	// History is the number of newest samples kept per class, 1 to 1000.
	History int `json:"history"`
	// MaximumTimeout limits the timeout of a job; a longer one is refused, see
	// [Policy.OriginalTimeout].
	MaximumTimeout Duration `json:"maximum_timeout"`
	// DefaultTimeout applies to jobs without their own timeout.
	DefaultTimeout Duration `json:"default_timeout"`
	// Stepwise escalates a job to the next class instead of the largest.
	Stepwise bool `json:"stepwise"`
	// ProbeBudget is the share of a job's core-seconds that probes may cost
	// after its first ten runs. Above 0, at most 1.
	ProbeBudget float64 `json:"probe_budget"`
	// ProbeExpiry is the time after its timeout when an unfinished probe stops
	// blocking others.
	ProbeExpiry Duration `json:"probe_expiry"`
	// Recheck is the number of runs after which an unsuitable class may be
	// probed again. 10 to 1000000.
	Recheck int `json:"recheck"`
}

// Defaults returns the values recommended by the size-class specification, with
// the exponent in the middle of its range.
func Defaults() Policy {
	return Policy{
		Exponent:          0.5,
		TimeoutMultiplier: 1.5,
		Minimum:           Duration(10 * time.Second),
		FailureCache:      Duration(24 * time.Hour),
		History:           32,
		MaximumTimeout:    Duration(2 * time.Hour),
		DefaultTimeout:    Duration(30 * time.Minute),
		ProbeBudget:       0.1,
		ProbeExpiry:       Duration(time.Hour),
		Recheck:           200,
	}
}

// Check refuses zeros and values out of range, naming field and range.
func (p Policy) Check() error {
	durations := []struct {
		name    string
		value   Duration
		atMost  Duration
		because string
	}{
		{"maximum_timeout", p.MaximumTimeout, Duration(30 * 24 * time.Hour), ""},
		{"default_timeout", p.DefaultTimeout, p.MaximumTimeout, ", the maximum_timeout"},
		{"minimum", p.Minimum, p.MaximumTimeout, ", the maximum_timeout"},
		{"failure_cache", p.FailureCache, Duration(365 * 24 * time.Hour), ""},
		{"probe_expiry", p.ProbeExpiry, Duration(30 * 24 * time.Hour), ""},
	}
	switch {
	case !(p.Exponent > 0 && p.Exponent <= 1): // NaN as well
		return refused("exponent", number(p.Exponent), "use a number above 0, at most 1, such as 0.5")
	case !(p.TimeoutMultiplier >= 1 && p.TimeoutMultiplier <= 100):
		return refused("timeout_multiplier", number(p.TimeoutMultiplier), "use a number from 1 to 100, such as 1.5")
	case p.History < 1 || p.History > 1000:
		return refused("history", strconv.Itoa(p.History), "use a whole number from 1 to 1000, such as 32")
	case !(p.ProbeBudget > 0 && p.ProbeBudget <= 1):
		return refused("probe_budget", number(p.ProbeBudget), "use a share above 0, at most 1, such as 0.1")
	case p.Recheck < 10 || p.Recheck > 1_000_000:
		return refused("recheck", strconv.Itoa(p.Recheck), "use a whole number from 10 to 1000000, such as 200")
	}
	for _, d := range durations {
		if d.value < Duration(time.Millisecond) || d.value > d.atMost {
			return refused(d.name, d.value.String(), fmt.Sprintf("use a duration from 1ms to %s%s", d.atMost, d.because))
		}
	}
	return nil
}

func refused(field, value, rule string) error {
	return fmt.Errorf("%w: %s %s: %s", ErrPolicy, field, value, rule)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// ReadPolicy reads a policy from JSON. Missing fields have their defaults;
// unknown fields and values refused by [Policy.Check] are errors.
func ReadPolicy(text []byte) (Policy, error) {
	p := Defaults()
	if len(bytes.TrimSpace(text)) == 0 {
		return p, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return Policy{}, fmt.Errorf("%w: %w", ErrPolicy, NameField(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, fmt.Errorf("%w: there is more after it", ErrPolicy)
	}
	return p, p.Check()
}

// OriginalTimeout returns the timeout of a job that requests asked; 0 means the
// default. A negative one or one above the maximum is refused, not capped.
func (p Policy) OriginalTimeout(asked time.Duration) (time.Duration, error) {
	switch {
	case asked == 0:
		return time.Duration(p.DefaultTimeout), nil
	case asked < 0 || asked > time.Duration(p.MaximumTimeout):
		return 0, fmt.Errorf("timeout %s: use one above 0 of at most %s", asked, p.MaximumTimeout)
	}
	return asked, nil
}
