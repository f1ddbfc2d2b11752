package orchestration

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/suite"
)

// sizedPart is a part of a job plan that runs on one size class.
type sizedPart struct {
	cases []bench.TestCase
	class bench.SizeClass // 0: any
	min   bench.SizeClass // the smallest that all of its benchmarks admit
	// shape is set where the class is still to be selected.
	shape bench.Shape
}

// bySize divides a job plan by size classes: where a person has chosen one, all of it
// runs there; else each test case where its series lives, for results compare within
// one class only. Those without a series, or whose class has gone, are together: their
// class is selected when they are handed out.
func (e expansion) bySize(s *suite.Suite, p boundPlan, iterations int) ([]sizedPart, error) {
	if pin := e.pin(); pin != 0 {
		return []sizedPart{{cases: p.TestCases, class: pin, min: p.MinSize}}, nil
	}
	classes := make(map[bench.SizeClass]*sizedPart)
	for _, tc := range p.TestCases {
		smallest := s.MinSize(tc.Benchmark)
		class := e.series[p.Target][tc]
		if class != 0 {
			if _, err := placement.Choose(e.fleet, e.sizedWish(p, sizedPart{class: class, min: smallest})); err != nil {
				class = 0
			}
		}
		part, known := classes[class]
		if !known {
			part = &sizedPart{class: class}
			classes[class] = part
		}
		part.cases, part.min = append(part.cases, tc), max(part.min, smallest)
	}
	if undecided := classes[0]; undecided != nil {
		alike := bench.Job{Work: bench.Work{Versus: e.request.Versus, Kind: p.Kind, Target: p.Target, TestCases: undecided.cases, Iterations: iterations}}
		undecided.shape = alike.SuiteShape()
		if err := e.presume(undecided, p); err != nil {
			return nil, err
		}
	}
	parts := make([]sizedPart, 0, len(classes))
	for _, part := range classes {
		parts = append(parts, *part)
	}
	slices.SortFunc(parts, func(a, b sizedPart) int {
		return slices.IndexFunc(p.TestCases, is(a.cases[0])) - slices.IndexFunc(p.TestCases, is(b.cases[0]))
	})
	return parts, nil
}

// sizedWish is what a part of a job plan needs.
func (e expansion) sizedWish(p boundPlan, part sizedPart) placement.Requirements {
	wish := e.wish(p.Target)
	wish.MinSize, wish.Class, wish.Pool = part.min, part.class, p.pool
	return wish
}

func is(want bench.TestCase) func(bench.TestCase) bool {
	return func(tc bench.TestCase) bool { return tc == want }
}

// presume lets jobs wait where their like went last, until it is decided.
func (e expansion) presume(part *sizedPart, p boundPlan) error {
	best, err := e.best([]bench.Shape{part.shape})
	if err != nil {
		return err
	}
	class := best[part.shape]
	if _, err := placement.Choose(e.fleet, e.sizedWish(p, sizedPart{class: class, min: part.min})); err == nil {
		part.class = class
	}
	return nil
}
