package sizeclass_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/sizeclass"
)

func TestInvalidPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, sizeclass.Defaults().Check())
	for _, c := range []struct {
		field  string
		change func(*sizeclass.Policy)
	}{
		{"exponent 0", func(p *sizeclass.Policy) { p.Exponent = 0 }},
		{"exponent -0.5", func(p *sizeclass.Policy) { p.Exponent = -0.5 }},
		{"exponent 1.1", func(p *sizeclass.Policy) { p.Exponent = 1.1 }},
		{"exponent NaN", func(p *sizeclass.Policy) { p.Exponent = math.NaN() }},
		{"timeout_multiplier 0", func(p *sizeclass.Policy) { p.TimeoutMultiplier = 0 }},
		{"timeout_multiplier 0.9", func(p *sizeclass.Policy) { p.TimeoutMultiplier = 0.9 }},
		{"timeout_multiplier +Inf", func(p *sizeclass.Policy) { p.TimeoutMultiplier = math.Inf(1) }},
		{"minimum 0s", func(p *sizeclass.Policy) { p.Minimum = 0 }},
		{"minimum 3h0m0s", func(p *sizeclass.Policy) { p.Minimum = sizeclass.Duration(3 * time.Hour) }},
		{"failure_cache 0s", func(p *sizeclass.Policy) { p.FailureCache = 0 }},
		{"history 0", func(p *sizeclass.Policy) { p.History = 0 }},
		{"history 1001", func(p *sizeclass.Policy) { p.History = 1001 }},
		{"maximum_timeout 0s", func(p *sizeclass.Policy) { p.MaximumTimeout = 0 }},
		{"default_timeout 0s", func(p *sizeclass.Policy) { p.DefaultTimeout = 0 }},
		{"default_timeout 2h1m0s: use a duration from 1ms to 2h0m0s, the maximum_timeout", func(p *sizeclass.Policy) { p.DefaultTimeout = sizeclass.Duration(121 * time.Minute) }},
		{"probe_budget 0", func(p *sizeclass.Policy) { p.ProbeBudget = 0 }},
		{"probe_budget 2", func(p *sizeclass.Policy) { p.ProbeBudget = 2 }},
		{"probe_expiry 0s", func(p *sizeclass.Policy) { p.ProbeExpiry = 0 }},
		{"recheck 0", func(p *sizeclass.Policy) { p.Recheck = 0 }},
	} {
		p := sizeclass.Defaults()
		c.change(&p)
		_, err := sizeclass.New(p)
		require.ErrorIs(t, err, sizeclass.ErrPolicy)
		require.ErrorContains(t, err, c.field)
	}
	_, err := sizeclass.New(sizeclass.Policy{})
	require.ErrorIs(t, err, sizeclass.ErrPolicy)
}

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	p, err := sizeclass.ReadPolicy(nil)
	require.NoError(t, err)
	require.Equal(t, sizeclass.Defaults(), p)

	p, err = sizeclass.ReadPolicy([]byte(`{"exponent": 0.3, "minimum": "1m", "stepwise": true}`))
	require.NoError(t, err)
	want := sizeclass.Defaults()
	want.Exponent, want.Minimum, want.Stepwise = 0.3, sizeclass.Duration(time.Minute), true
	require.Equal(t, want, p)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	again, err := sizeclass.ReadPolicy(text)
	require.NoError(t, err)
	require.Equal(t, want, again)

	for text, want := range map[string]string{
		`{"exponnent": 0.3}`:   "exponnent: there is no such field",
		`{"exponent": "half"}`: "exponent: string is not what belongs there, which is a number",
		`{"minimum": "short"}`: `minimum: "short" is not a duration; write one such as "10s"`,
		`{"minimum": 10}`:      "minimum: number is not a duration",
		`{"stepwise": 1}`:      "stepwise: number is not what belongs there, which is true or false",
		`{"history": 0}`:       "history 0: use a whole number from 1 to 1000",
		`{"history": 1.5}`:     "history: number 1.5 is not what belongs there, which is a whole number",
		`[]`:                   "the whole: array is not what belongs there, which is an object",
		`{`:                    "it is not JSON",
		`{} {}`:                "there is more after it",
	} {
		_, err := sizeclass.ReadPolicy([]byte(text))
		require.ErrorIs(t, err, sizeclass.ErrPolicy, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestOriginalTimeout(t *testing.T) {
	t.Parallel()
	p := sizeclass.Defaults()
	for asked, want := range map[time.Duration]time.Duration{0: 30 * time.Minute, time.Second: time.Second, 2 * time.Hour: 2 * time.Hour} {
		got, err := p.OriginalTimeout(asked)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, asked := range []time.Duration{-time.Second, 2*time.Hour + 1} {
		_, err := p.OriginalTimeout(asked)
		require.ErrorContains(t, err, "at most 2h0m0s")
	}
}
