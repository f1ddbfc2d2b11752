package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RetentionKind is a kind of data that the record keeps for a limited time.
type RetentionKind string

const (
	// KeepOutput: the output of runs, its tails and their last progress, from the end of the
	// run on.
	KeepOutput RetentionKind = "output"
	// KeepSamples: what was sampled during runs, from the beginning of the sampling on, in
	// whole weeks.
	KeepSamples RetentionKind = "samples"
	// KeepCommands: ad-hoc requests for commands with their jobs, runs and results, from
	// their end on.
	KeepCommands RetentionKind = "commands"
	// KeepAdHoc: ad-hoc measurements, from their end on, unless something that is kept
	// needs their results.
	KeepAdHoc RetentionKind = "adhoc"
	// KeepTry: try builds, in the same way.
	KeepTry RetentionKind = "try"
	// KeepCanaries: canaries with their requests. The newest of each collector stay,
	// since its noise is known from them.
	KeepCanaries RetentionKind = "canaries"
	// KeepSuites: suites that no project, job or pause refers to, since they were last
	// submitted.
	KeepSuites RetentionKind = "suites"
	// KeepDeliveries: notifications of artifacts, from their last arrival on, once their
	// request has ended.
	KeepDeliveries RetentionKind = "deliveries"
	// KeepAudit: entries of the audit that no invalid result refers to.
	KeepAudit RetentionKind = "audit"
	// KeepShapes: what is known of the sizes of jobs that have not run since.
	KeepShapes RetentionKind = "shapes"
	// KeepNoise: noise models of series that were not measured since.
	KeepNoise RetentionKind = "noise"
	// KeepTokens: tokens that were revoked, replaced or have expired.
	KeepTokens RetentionKind = "tokens"
	// KeepInvitations: invitations of collectors that have expired unused.
	KeepInvitations RetentionKind = "invitations"
)

// Forever, as a duration of retention, removes nothing; it is written as "forever".
const Forever time.Duration = 0

const foreverText = "forever"

const (
	day = 24 * time.Hour
	// leastKept is the shortest retention: people may still look at what has just ended.
	leastKept = day
	mostKept  = 100 * 365 * day
)

// Retention says how long each kind is kept; [Forever]: nothing of it is removed.
type Retention map[RetentionKind]time.Duration

// DefaultRetention returns how long each kind is kept unless configured. Results of
// releases, commits and try builds are kept forever.
func DefaultRetention() Retention {
	return Retention{
		KeepOutput:      90 * day,
		KeepSamples:     90 * day,
		KeepCommands:    30 * day,
		KeepAdHoc:       365 * day,
		KeepTry:         Forever,
		KeepCanaries:    90 * day,
		KeepSuites:      30 * day,
		KeepDeliveries:  30 * day,
		KeepAudit:       2 * 365 * day,
		KeepShapes:      365 * day,
		KeepNoise:       180 * day,
		KeepTokens:      365 * day,
		KeepInvitations: 30 * day,
	}
}

// RetentionKinds lists all kinds, in the order in which they are removed.
func RetentionKinds() []RetentionKind {
	return []RetentionKind{
		KeepOutput, KeepSamples, KeepCommands, KeepCanaries, KeepAdHoc, KeepTry, KeepDeliveries, KeepSuites, KeepShapes, KeepNoise, KeepAudit, KeepTokens, KeepInvitations,
	}
}

// OfProject reports whether projects may configure the kind for themselves.
func (k RetentionKind) OfProject() bool {
	switch k {
	case KeepOutput, KeepSamples, KeepCommands, KeepAdHoc, KeepTry, KeepDeliveries:
		return true
	}
	return false
}

// ParseRetention reads durations by kind, such as {"output": "30d", "try": "forever"}. A kind
// that is left out is not in the result.
func ParseRetention(texts map[string]string) (Retention, error) {
	kept := make(Retention, len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		kind := RetentionKind(name)
		if !slices.Contains(RetentionKinds(), kind) {
			return nil, invalid("kind of retention", name, "use one of "+kindNames(func(RetentionKind) bool { return true }))
		}
		d, err := ParseKept(texts[name])
		if err != nil {
			return nil, err
		}
		kept[kind] = d
	}
	return kept, nil
}

// ParseKept reads a number of days, such as 90d, a duration such as 36h, or forever.
func ParseKept(text string) (time.Duration, error) {
	refused := invalid("retention", text, "use a number of days from 1d to 36500d such as 90d, or forever")
	if text == foreverText {
		return Forever, nil
	}
	var d time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > int(mostKept/day) {
			return 0, refused
		}
		d = time.Duration(n) * day
	} else {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return 0, refused
		}
	}
	if d < leastKept || d > mostKept {
		return 0, refused
	}
	return d, nil
}

// KeptText writes a retention as [ParseRetention] reads it.
func KeptText(d time.Duration) string {
	switch {
	case d == Forever:
		return foreverText
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

func kindNames(which func(RetentionKind) bool) string {
	var names []string
	for _, k := range RetentionKinds() {
		if which(k) {
			names = append(names, string(k))
		}
	}
	return strings.Join(names, ", ")
}

// Retention returns what the project configures for itself.
func (c ProjectConfig) Retention() Retention {
	kept, err := ParseRetention(c.Keep)
	if err != nil {
		return nil // refused by Check
	}
	return kept
}

func (c ProjectConfig) checkKeep() error {
	kept, err := ParseRetention(c.Keep)
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(kept)) {
		if !kind.OfProject() {
			return invalid("keep", string(kind), "it is not a project's: use "+kindNames(RetentionKind.OfProject)+", or configure it for all with --keep of the orchestrator")
		}
	}
	return nil
}
