package bench

import (
	"slices"
	"strings"
)

// maxDistance bounds the length of the names that are compared, in bytes: the time
// grows with the product of the lengths.
const maxDistance = 200

// Nearest returns the known names that a person may have meant by an unknown one, nearest
// first and at most the given number. Names that share less than half of their characters
// with it are left out, unless it is their beginning.
func Nearest(name string, known []string, most int) []string {
	type candidate struct {
		name string
		away int
	}
	var near []candidate
	for _, k := range known {
		if len(k) > maxDistance || len(name) > maxDistance {
			continue
		}
		away := Distance(name, k)
		if strings.HasPrefix(strings.ToLower(k), strings.ToLower(name)) {
			away = min(away, 1) // name is the beginning of it
		}
		if 2*away <= max(len([]rune(k)), len([]rune(name))) {
			near = append(near, candidate{k, away})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.away - b.away })
	names := make([]string, 0, most)
	for _, c := range near[:min(most, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// Distance returns the number of characters to add, remove or replace that make one text
// of another, case aside (Levenshtein).
func Distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range y {
			replaced := diagonal
			if r != s {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}
