package flame

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

// Function holds the values of a function in a profile.
type Function struct {
	Name string
	// File has the source file, if it is known.
	File string
	// Self is the value of samples in the function itself, Total that of those in it or in
	// what it called. A function that calls itself counts once.
	Self, Total int64
}

// Table has the functions of a profile, those with the largest own value first.
type Table struct {
	Type, Unit string
	// Sum is the value of all samples.
	Sum       int64
	Functions []Function
}

// Top adds up the values of a sample type by function; empty: the default type.
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

// Share returns which part of the whole a value is, 0 of an empty one.
func Share(value, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(value) / float64(whole)
}

// Change compares a function in two profiles. Shares are parts of all samples of their
// profile: two profiles seldom have equally many.
type Change struct {
	Name, File           string
	SelfA, SelfB         int64
	TotalA, TotalB       int64
	SelfShareA           float64
	SelfShareB           float64
	TotalShareA          float64
	TotalShareB          float64
	OnlyInA, OnlyInB     bool
	changeOfSelf, change float64
}

// Difference has the functions of two profiles.
type Difference struct {
	Type, Unit string
	// SumA and SumB are the values of all samples.
	SumA, SumB int64
	// Functions begins with those whose own share changed most.
	Functions []Change
}

// Diff compares two profiles function by function; empty: by their default type.
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
		c.changeOfSelf, c.change = math.Abs(c.SelfShareB-c.SelfShareA), math.Abs(c.TotalShareB-c.TotalShareA)
	}
	slices.SortFunc(d.Functions, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.changeOfSelf, a.changeOfSelf), cmp.Compare(b.change, a.change), cmp.Compare(a.Name, b.Name))
	})
	return d, nil
}
