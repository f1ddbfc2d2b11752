package flame

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

// Function holds the values of a function in a profile.
type Function struct {
	Name string `json:"name"`
	// File has the source file, if it is known.
	File string `json:"file,omitempty"`
	// Self is the value of samples in the function itself, Total that of those in it or in
	// what it called. A function that calls itself counts once.
	Self  int64 `json:"self"`
	Total int64 `json:"total"`
}

// Table has the functions of a profile, those with the largest own value first.
type Table struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	// Sum is the value of all samples.
	Sum       int64      `json:"sum"`
	Functions []Function `json:"functions"`
}

// Top adds up the values of a sample type by function; empty means the default type.
func Top(p *profile.Profile, sampleType string) (Table, error) {
	i, err := index(p, sampleType)
	if err != nil {
		return Table{}, err
	}
	t := Table{Type: p.SampleType[i].Type, Unit: p.SampleType[i].Unit}
	at := map[string]int{}
	last := map[string]int{} // the last sample that counted for a function's total
	for n, s := range p.Sample {
		v := s.Value[i]
		t.Sum = sum(t.Sum, v)
		frames := outermostFirst(s)
		for depth, f := range frames {
			k, known := at[f.name]
			if !known {
				k = len(t.Functions)
				at[f.name] = k
				t.Functions = append(t.Functions, Function{Name: f.name, File: f.file})
			}
			if last[f.name] != n+1 {
				last[f.name] = n + 1
				t.Functions[k].Total = sum(t.Functions[k].Total, v)
			}
			if depth == len(frames)-1 {
				t.Functions[k].Self = sum(t.Functions[k].Self, v)
			}
		}
	}
	slices.SortFunc(t.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return t, nil
}

// sum adds without wrapping around.
func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// Share returns a value as a part of the whole; 0 if the whole is empty.
func Share(value, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(value) / float64(whole)
}

// Change compares a function in two profiles. Shares are parts of all samples of their
// profile: two profiles seldom have equally many.
type Change struct {
	Name        string  `json:"name"`
	File        string  `json:"file,omitempty"`
	SelfA       int64   `json:"self_a"`
	SelfB       int64   `json:"self_b"`
	TotalA      int64   `json:"total_a"`
	TotalB      int64   `json:"total_b"`
	SelfShareA  float64 `json:"self_share_a"`
	SelfShareB  float64 `json:"self_share_b"`
	TotalShareA float64 `json:"total_share_a"`
	TotalShareB float64 `json:"total_share_b"`
	// OnlyInA and OnlyInB report a function that the other profile lacks.
	OnlyInA bool `json:"only_in_a,omitempty"`
	OnlyInB bool `json:"only_in_b,omitempty"`
}

// Difference has the functions of two profiles.
type Difference struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	// SumA and SumB are the values of all samples.
	SumA int64 `json:"sum_a"`
	SumB int64 `json:"sum_b"`
	// Functions begins with those whose own share changed most.
	Functions []Change `json:"functions"`
}

// Diff compares two profiles function by function; an empty type means the default of the first.
func Diff(a, b *profile.Profile, sampleType string) (Difference, error) {
	ta, err := Top(a, sampleType)
	if err != nil {
		return Difference{}, err
	}
	tb, err := Top(b, ta.Type)
	if err != nil {
		return Difference{}, err
	}
	d := Difference{Type: ta.Type, Unit: ta.Unit, SumA: ta.Sum, SumB: tb.Sum}
	at := make(map[string]int, len(ta.Functions))
	for i, f := range ta.Functions {
		at[f.Name] = i
		d.Functions = append(d.Functions, Change{Name: f.Name, File: f.File, SelfA: f.Self, TotalA: f.Total, OnlyInA: true})
	}
	for _, f := range tb.Functions {
		i, known := at[f.Name]
		if !known {
			i = len(d.Functions)
			d.Functions = append(d.Functions, Change{Name: f.Name, OnlyInB: true})
		}
		c := &d.Functions[i]
		c.File, c.SelfB, c.TotalB, c.OnlyInA = cmp.Or(f.File, c.File), f.Self, f.Total, false
	}
	for i := range d.Functions {
		c := &d.Functions[i]
		c.SelfShareA, c.SelfShareB = Share(c.SelfA, d.SumA), Share(c.SelfB, d.SumB)
		c.TotalShareA, c.TotalShareB = Share(c.TotalA, d.SumA), Share(c.TotalB, d.SumB)
	}
	slices.SortFunc(d.Functions, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(math.Abs(b.SelfShareB-b.SelfShareA), math.Abs(a.SelfShareB-a.SelfShareA)),
			cmp.Compare(math.Abs(b.TotalShareB-b.TotalShareA), math.Abs(a.TotalShareB-a.TotalShareA)), cmp.Compare(a.Name, b.Name))
	})
	return d, nil
}
