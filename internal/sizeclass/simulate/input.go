package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// ErrInput reports an input that cannot be simulated.
var ErrInput = errors.New("simulation input")

// MostRuns limits the number of runs of a simulation.
const MostRuns = 1_000_000

// Input describes a simulation.
type Input struct {
	// Classes are the available size classes, ascending.
	Classes []bench.SizeClass `json:"classes"`
	// Policy of the analyzer; missing fields have their defaults.
	Policy sizeclass.Policy `json:"policy"`
	// OriginalTimeout is the job's own timeout; by default the policy's.
	OriginalTimeout sizeclass.Duration `json:"original_timeout"`
	// Runs is the number of consecutive runs; 500 by default.
	Runs int `json:"runs"`
	// Seed of the random source: equal seeds give equal runs.
	Seed  uint64 `json:"seed"`
	Shape Shape  `json:"shape"`
}

// Shape describes the job's behaviour.
type Shape struct {
	// Durations by class.
	Durations map[string]sizeclass.Duration `json:"durations"`
	// Noise is the standard deviation of the logarithm of the factor that each
	// duration is multiplied by: 0.1 is about a tenth.
	Noise float64 `json:"noise"`
	// FailsBelow: on smaller classes the job runs out of memory after FailsAfter.
	FailsBelow bench.SizeClass    `json:"fails_below"`
	FailsAfter sizeclass.Duration `json:"fails_after"`
	// DriftAt is the run, counted from 1, from which DurationsAfter applies; 0
	// means none.
	DriftAt        int                           `json:"drift_at"`
	DurationsAfter map[string]sizeclass.Duration `json:"durations_after"`
	// Tail and Bimodal make some attempts longer, independently of each other.
	Tail    Exception `json:"tail"`
	Bimodal Exception `json:"bimodal"`
	// FailureRate is the share of attempts that fail at their end, on any class.
	FailureRate float64 `json:"failure_rate"`
}

// Exception multiplies the duration of some attempts.
type Exception struct {
	// Probability per attempt, from 0 to 1; 0 means none.
	Probability float64 `json:"probability"`
	// Factor of its duration, above 0.
	Factor float64 `json:"factor"`
}

// Decode reads an input from JSON. Unknown fields and invalid values are
// refused, with the field's name.
func Decode(text []byte) (Input, error) {
	const unset = math.MinInt64
	in := Input{Policy: sizeclass.Defaults(), Runs: 500, OriginalTimeout: unset}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return Input{}, fmt.Errorf("%w: %w", ErrInput, sizeclass.NameField(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Input{}, fmt.Errorf("%w: there is more after it; it is one JSON object", ErrInput)
	}
	if in.OriginalTimeout == unset {
		in.OriginalTimeout = in.Policy.DefaultTimeout
	}
	return in, in.Check()
}

// Check returns an error if the input is invalid.
func (in Input) Check() error {
	if err := in.Policy.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	question := sizeclass.Question{Classes: in.Classes, Original: 1}
	if err := question.Check(); err != nil {
		return fmt.Errorf("%w: classes: %w", ErrInput, err)
	}
	if in.Runs < 1 || in.Runs > MostRuns {
		return bad("runs", strconv.Itoa(in.Runs), fmt.Sprintf("use a number from 1 to %d", MostRuns))
	}
	if in.OriginalTimeout <= 0 || in.OriginalTimeout > in.Policy.MaximumTimeout {
		return bad("original_timeout", in.OriginalTimeout.String(), fmt.Sprintf("use a duration above 0 of at most %s, the policy's maximum_timeout", in.Policy.MaximumTimeout))
	}
	return in.Shape.check(in.Classes)
}

func bad(field, value, rule string) error {
	return fmt.Errorf("%w: %s: %s: %s", ErrInput, field, value, rule)
}

func (s Shape) check(classes []bench.SizeClass) error {
	if err := checkDurations("shape.durations", s.Durations, classes); err != nil {
		return err
	}
	switch {
	case s.DriftAt < 0:
		return bad("shape.drift_at", strconv.Itoa(s.DriftAt), "use the number of a run, or 0 for none")
	case s.DriftAt == 0 && len(s.DurationsAfter) > 0:
		return bad("shape.drift_at", "0", "name the run from which durations_after applies")
	case s.DriftAt > 0:
		if err := checkDurations("shape.durations_after", s.DurationsAfter, classes); err != nil {
			return err
		}
	}
	switch {
	case !(s.Noise >= 0 && s.Noise <= 3):
		return bad("shape.noise", fmt.Sprint(s.Noise), "use a number from 0 to 3, such as 0.1")
	case s.FailsBelow < 0 || s.FailsBelow > bench.MaxSizeClass:
		return bad("shape.fails_below", fmt.Sprint(int(s.FailsBelow)), fmt.Sprintf("use a size class up to %d, or 0 for none", bench.MaxSizeClass))
	case s.FailsAfter < 0 || s.FailsBelow > 0 && s.FailsAfter == 0:
		return bad("shape.fails_after", s.FailsAfter.String(), "use a duration above 0, such as 5s")
	case !(s.FailureRate >= 0 && s.FailureRate <= 1):
		return bad("shape.failure_rate", fmt.Sprint(s.FailureRate), "use a share from 0 to 1")
	}
	if err := s.Tail.check("shape.tail"); err != nil {
		return err
	}
	return s.Bimodal.check("shape.bimodal")
}

func checkDurations(field string, durations map[string]sizeclass.Duration, classes []bench.SizeClass) error {
	for _, c := range classes {
		d, ok := durations[strconv.Itoa(int(c))]
		switch name := fmt.Sprintf("%s.%d", field, c); {
		case !ok:
			return fmt.Errorf("%w: %s: is missing; every class needs a duration", ErrInput, name)
		case d <= 0 || time.Duration(d) > 30*24*time.Hour:
			return bad(name, d.String(), "use a duration above 0 of at most 720h")
		}
	}
	for name := range durations {
		n, err := strconv.Atoi(name)
		if err != nil || !slices.Contains(classes, bench.SizeClass(n)) {
			return fmt.Errorf("%w: %s.%s: is not one of the classes %v", ErrInput, field, name, classes)
		}
	}
	return nil
}

func (e Exception) check(field string) error {
	switch {
	case !(e.Probability >= 0 && e.Probability <= 1):
		return bad(field+".probability", fmt.Sprint(e.Probability), "use a number from 0 to 1")
	case e.Probability > 0 && !(e.Factor > 0 && e.Factor <= math.MaxInt16):
		return bad(field+".factor", fmt.Sprint(e.Factor), fmt.Sprintf("use a number above 0, at most %d", math.MaxInt16))
	}
	return nil
}

// duration returns the duration of a run on a class, without noise.
func (s Shape) duration(class bench.SizeClass, run int) time.Duration {
	durations := s.Durations
	if s.DriftAt > 0 && run >= s.DriftAt {
		durations = s.DurationsAfter
	}
	return time.Duration(durations[strconv.Itoa(int(class))])
}
