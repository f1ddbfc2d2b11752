package filter

import (
	"cmp"
	"slices"
	"strings"
)

// Facet counts what a filter leaves by one of its properties.
type Facet struct {
	Key string
	// Values holds those that the filter chooses first, then the most frequent ones.
	Values []FacetValue
}

// FacetValue is a value that some of what is left has.
type FacetValue struct {
	Name  string
	Count int
	// Chosen is set if the filter asks for it already. Text is the filter with the value's
	// word added or, if Chosen, removed.
	Chosen bool
	Text   string
}

// maxFacetValues bounds the values of a facet.
const maxFacetValues = 12

// Facets counts n things, which the filter text has left, by their values of each key. What
// is the same for all of them is left out, unless the filter asks for it.
func Facets(text string, keys []string, n int, values func(i int, key string) []string) []Facet {
	var facets []Facet
	words := strings.Fields(text)
	for _, key := range keys {
		found := make(map[string]*FacetValue) // by word: what it stands for counts as one
		var list []*FacetValue
		lastName := ""
		var last *FacetValue // neighbours are often alike
		for i := range n {
			of := values(i, key)
			for k, name := range of {
				if name == "" || slices.ContainsFunc(of[:k], func(before string) bool { return Word(before) == Word(name) }) {
					continue
				}
				if last == nil || name != lastName {
					w := Word(name)
					v := found[w]
					if v == nil {
						v = &FacetValue{Name: name, Text: key + ":" + w}
						found[w] = v
						list = append(list, v)
					}
					last, lastName = v, name
				}
				last.Count++
			}
		}
		one, varies := Facet{Key: key}, false
		for _, v := range list {
			v.Text, v.Chosen = toggle(words, v.Text)
			varies = varies || v.Chosen || v.Count < n
			one.Values = append(one.Values, *v)
		}
		if !varies {
			continue
		}
		slices.SortFunc(one.Values, func(a, b FacetValue) int {
			if a.Chosen != b.Chosen {
				return map[bool]int{true: -1, false: 1}[a.Chosen]
			}
			return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name))
		})
		one.Values = one.Values[:min(len(one.Values), maxFacetValues)]
		facets = append(facets, one)
	}
	return facets
}

// toggle adds a term to the words of a filter, or removes it if it is there.
func toggle(words []string, term string) (text string, there bool) {
	rest := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.ToLower(w) == term })
	if there = len(rest) < len(words); !there {
		rest = append(rest, term)
	}
	return strings.Join(rest, " "), there
}
