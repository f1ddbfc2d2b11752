package filter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/filter"
)

// thing is listed by its properties.
type thing map[string][]string

func (t thing) shown(f filter.Filter) bool {
	return f.Shows(func(key string) []string { return t[key] }, func() []string { return nil })
}

func facetsOf(text string, keys []string, list []thing) []filter.Facet {
	return filter.Facets(text, keys, len(list), func(i int, key string) []string { return list[i][key] })
}

func TestFacetsNameWhatTellsThingsApart(t *testing.T) {
	t.Parallel()
	list := []thing{
		{"profile": {"Opt"}, "target": {"x86"}, "verdict": {"changed", "regression", "changed", "regression"}},
		{"profile": {"opt"}, "target": {"x86"}},
		{"profile": {"debug info"}, "target": {"x86"}, "backend": {""}},
	}
	keys := []string{"profile", "target", "backend", "verdict"}
	require.Equal(t, []filter.Facet{
		{Key: "profile", Values: []filter.FacetValue{{Name: "Opt", Count: 2, Text: "gin profile:opt"}, {Name: "debug info", Count: 1, Text: "gin profile:debug-info"}}},
		{Key: "verdict", Values: []filter.FacetValue{{Name: "changed", Count: 1, Text: "gin verdict:changed"}, {Name: "regression", Count: 1, Text: "gin verdict:regression"}}},
	}, facetsOf("gin", keys, list), "what all have in common, and what none has, tells nothing")
	require.Equal(t, []filter.Facet{
		{Key: "target", Values: []filter.FacetValue{{Name: "x86", Count: 3, Chosen: true, Text: "-gin"}}},
	}, facetsOf("-gin TARGET:x86", keys[1:3], list), "what is asked for can be left")
	require.Empty(t, facetsOf("gin", keys, nil))
}

// Whatever is listed: each choice leaves as many as it says, and the same choice leads back.
func TestFacetsCountWhatAChoiceLeaves(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 6))
	keys := []string{"profile", "backend", "noise"}
	names := []string{"", "a", "A", "a b", "x:y", "-z", "a\u00a0c", "é", "long name"}
	for range 200 {
		list := make([]thing, random.IntN(40))
		for i := range list {
			list[i] = make(thing)
			for _, key := range keys {
				for range random.IntN(3) {
					list[i][key] = append(list[i][key], names[random.IntN(len(names))])
				}
			}
		}
		text := ""
		for range 3 {
			left := slices.DeleteFunc(slices.Clone(list), func(one thing) bool { return !one.shown(filter.Read(text, keys)) })
			facets := facetsOf(text, keys, left)
			next := text
			for _, f := range facets {
				for _, v := range f.Values {
					leaves := 0
					for _, one := range list {
						if one.shown(filter.Read(v.Text, keys)) {
							leaves++
						}
					}
					if v.Chosen {
						require.GreaterOrEqual(t, leaves, v.Count, v.Text)
						continue
					}
					require.Equal(t, v.Count, leaves, "%q of %s after %q", v.Name, f.Key, text)
					next = v.Text
				}
			}
			text = next
		}
	}
}

func TestFacetsAreBounded(t *testing.T) {
	t.Parallel()
	var list []thing
	for i := range 1000 {
		list = append(list, thing{"benchmark": {fmt.Sprintf("b%03d", i/(1+i%2))}})
	}
	values := facetsOf("", []string{"benchmark"}, list)[0].Values
	require.Len(t, values, 12)
	require.False(t, slices.ContainsFunc(values, func(v filter.FacetValue) bool { return v.Count < 2 }), "the most frequent ones")
	values = facetsOf("BENCHMARK:b998", []string{"benchmark"}, list)[0].Values
	require.Equal(t, filter.FacetValue{Name: "b998", Count: 1, Chosen: true, Text: ""}, values[0], "what is chosen is always there")
	require.True(t, strings.HasPrefix(values[1].Text, "BENCHMARK:b998 benchmark:"))
}
