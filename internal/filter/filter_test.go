package filter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/filter"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	values := func(key string) []string {
		return map[string][]string{"profile": {"Opt"}, "metric": {"size:binary"}, "verdict": {"changed", "regression"}, "backend": {""}, "scenario": {"Two\twords"}}[key]
	}
	texts := func() []string { return []string{"Serde derive", "opt", "at:noon"} }
	keys := []string{"profile", "metric", "verdict", "backend", "scenario"}
	for text, want := range map[string]bool{
		"":                         true,
		"serde":                    true,
		"SERDE der":                true,
		"ser opt":                  true,
		"ser debug":                false,
		"-debug":                   true,
		"-opt":                     false,
		"-":                        false,
		"profile:opt":              true,
		"profile:op":               false,
		"-profile:opt":             false,
		"metric:size:binary":       true,
		"verdict:regression":       true,
		"-verdict:regression":      false,
		"backend:":                 true,
		"profile:":                 false,
		"at:noon":                  true,
		"scenario:full":            false,
		"scenario:two-words":       true,
		"profile:opt -verdict:new": true,
	} {
		require.Equal(t, want, filter.Read(text, keys).Shows(values, texts), "%q", text)
	}
}
