// Package filter narrows lists by words.
//
// It must not know what is listed, or why.
package filter

import (
	"slices"
	"strings"
	"unicode"
)

// Filter is a list of conditions that must all hold. A word is part of a text, key:value is
// exact, and a minus before either leaves out what it matches.
type Filter []condition

type condition struct {
	not        bool
	key, value string
}

// Word writes a value of a key as it stands in a word: in lower case and without spaces,
// which separate words.
func Word(value string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '-'
		}
		return r
	}, strings.ToLower(value))
}

// Read reads a filter. keys are those of key:value; any other word with a colon is a part of
// a text like all words.
func Read(text string, keys []string) Filter {
	var f Filter
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		var c condition
		if rest, not := strings.CutPrefix(word, "-"); not && rest != "" {
			c.not, word = true, rest
		}
		c.value = word
		if key, value, ok := strings.Cut(word, ":"); ok && slices.Contains(keys, key) {
			c.key, c.value = key, value
		}
		f = append(f, c)
	}
	return f
}

// Shows reports whether all conditions hold for something with these values of a key and
// these texts.
func (f Filter) Shows(values func(key string) []string, texts func() []string) bool {
	return !slices.ContainsFunc(f, func(c condition) bool {
		var holds bool
		if c.key != "" {
			holds = slices.ContainsFunc(values(c.key), func(v string) bool { return strings.ToLower(v) == c.value || Word(v) == c.value })
		} else {
			holds = slices.ContainsFunc(texts(), func(text string) bool { return strings.Contains(strings.ToLower(text), c.value) })
		}
		return holds == c.not
	})
}
