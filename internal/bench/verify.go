package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// VerifyMode selects the results of a release, commit or try build that are measured
// again, in turns with the baseline, until there is a verdict.
type VerifyMode string

const (
	// VerifyOff measures nothing again: suspicions stay undecided.
	VerifyOff VerifyMode = "off"
	// VerifySuspects measures again what may have changed, by the history of its
	// series. It is the default.
	VerifySuspects VerifyMode = "suspects"
	// VerifyAll measures everything again, as far as the budget goes.
	VerifyAll VerifyMode = "all"
)

// read sets the mode from a decoded value. In v0.1.0 the setting was true or false, and
// YAML 1.1 reads off as false.
func (m *VerifyMode) read(value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case bool:
		if *m = VerifyOff; v {
			*m = VerifySuspects
		}
		return nil
	case string:
		*m = VerifyMode(v)
		return m.check()
	}
	return invalid("verify", fmt.Sprint(value), "use off, suspects or all")
}

func (m VerifyMode) check() error {
	switch m {
	case "", VerifyOff, VerifySuspects, VerifyAll:
		return nil
	}
	return invalid("verify", string(m), "use off, suspects or all")
}

// UnmarshalYAML reads a mode, or the boolean of earlier versions.
func (m *VerifyMode) UnmarshalYAML(read func(any) error) error {
	var value any
	if err := read(&value); err != nil {
		return err
	}
	return m.read(value)
}

// UnmarshalJSON reads a mode, or the boolean of earlier versions.
func (m *VerifyMode) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return m.read(value)
}

// VerifyBudget is the default share of a request's machine time that measuring again may
// add.
const VerifyBudget = 0.25

// VerifyAtLeast is the default machine time that measuring again may always take. The first
// look that can confirm a change comes after 14 pairs: a share of a small suite's few
// iterations would never lead to a verdict.
const VerifyAtLeast = 10 * time.Minute

// maxVerifyAtLeast bounds the time: more is better said with a larger share.
const maxVerifyAtLeast = 24 * time.Hour

// maxVerifyBudget bounds the share: more is better said with the mode "all".
const maxVerifyBudget = 100

// VerifyMode returns the mode in force.
func (c ProjectConfig) VerifyMode() VerifyMode {
	if c.Verify == "" {
		return VerifySuspects
	}
	return c.Verify
}

// VerifyTime returns the machine time that measuring again may add to a request whose own
// jobs have taken own: a share of that, and at least a time, [VerifyAtLeast] by default.
func (c ProjectConfig) VerifyTime(own time.Duration) time.Duration {
	share, err := parsePercent(c.VerifyBudget)
	if err != nil {
		share = VerifyBudget // refused by Check
	}
	least, err := parseAtLeast(c.VerifyAtLeast)
	if err != nil {
		least = VerifyAtLeast // refused by Check
	}
	return max(least, time.Duration(share*float64(own)))
}

func (c ProjectConfig) checkVerify() error {
	if err := c.Verify.check(); err != nil {
		return err
	}
	if share, err := parsePercent(c.VerifyBudget); err != nil || !(share >= 0.01 && share <= maxVerifyBudget) {
		return invalid("verify_budget", c.VerifyBudget, "use a percentage from 1% to 10000%, or leave it out for 25%")
	}
	if least, err := parseAtLeast(c.VerifyAtLeast); err != nil || least < time.Second || least > maxVerifyAtLeast {
		return invalid("verify_at_least", c.VerifyAtLeast, "use a duration from 1s to 24h such as 4m, or leave it out for 10m")
	}
	return nil
}

// parseAtLeast parses a duration such as 4m; empty is the default.
func parseAtLeast(text string) (time.Duration, error) {
	if text == "" {
		return VerifyAtLeast, nil
	}
	return time.ParseDuration(text)
}

// parsePercent parses a percentage such as 25%; empty is the default budget.
func parsePercent(text string) (float64, error) {
	if text == "" {
		return VerifyBudget, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, strconv.ErrSyntax
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return percent / 100, err
}
