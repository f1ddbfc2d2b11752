package apiclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/stats"
)

// words are the values that package stats writes as words, and their numbers, by
// the name of the field that holds them.
func words() map[string]map[string]int {
	magnitudes := numbered(func(n int) string { return stats.Magnitude(n).String() })
	return map[string]map[string]int{
		"verdict":   numbered(func(n int) string { return stats.Verdict(n).String() }),
		"magnitude": magnitudes,
		"largest":   magnitudes,
		"direction": numbered(func(n int) string { return stats.Direction(n).String() }),
	}
}

// numbered collects the words of a type: up to the first value without one,
// which is written as Type(n).
func numbered(word func(n int) string) map[string]int {
	out := make(map[string]int)
	for n := 0; !strings.HasSuffix(word(n), fmt.Sprintf("(%d)", n)); n++ {
		out[word(n)] = n
	}
	return out
}

// UnmarshalJSON reads a comparison as the API writes it. The types of package
// stats write themselves as words and are read as numbers, so that the words are
// looked up here. What was never sent is not read: single values. Such a
// comparison cannot be written as a table; see [Client.CompareText].
func (c *Comparison) UnmarshalJSON(text []byte) error {
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	known := words()
	for _, part := range []string{"result", "summary"} {
		if err := asNumbers(whole[part], known); err != nil {
			return err
		}
	}
	rewritten, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	type plain Comparison // without this method
	return json.Unmarshal(rewritten, (*plain)(c))
}

// asNumbers replaces words by numbers in place.
func asNumbers(v any, known map[string]map[string]int) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := asNumbers(e, known); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			word, isWord := e.(string)
			numbers, isKnown := known[name]
			if !isWord || !isKnown {
				if err := asNumbers(e, known); err != nil {
					return err
				}
				continue
			}
			number, ok := numbers[word]
			if !ok {
				return fmt.Errorf("reading a comparison: unknown %s %q; is the API newer than this program?", name, word)
			}
			v[name] = number
		}
	}
	return nil
}
