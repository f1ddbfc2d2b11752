package pages

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// sizeClassAPI backs the pages of size classes.
type sizeClassAPI interface {
	Shapes(ctx context.Context, project string) (apiclient.ShapeList, error)
	Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error)
}

func (p *Pages) sizeClassPages() []page {
	return []page{
		{pattern: "/sizeclasses", parameters: []string{searchParameter, onlyParameter, sortParameter, pageParameter}, show: p.sizeClasses},
		{pattern: "/sizeclasses/{shape}", parameters: []string{onlyParameter}, show: p.sizeClass},
	}
}

type sizeClassesView struct {
	Search, Only string
	Projects     []string
	Shapes       []apiclient.Shape
	Order        order
	Next         string
	// Known counts all shapes, Found those that match.
	Known, Found int
}

// sizeClasses lists the job shapes of which something was learned.
func (p *Pages) sizeClasses(v *visit) (*view, error) {
	out := &view{template: "sizeclasses", Title: "Size classes", Area: "/sizeclasses", APIPath: "/api/v1/sizeclasses", Command: "benchloom sizeclass list"}
	list, err := v.api.Shapes(v.Context(), "")
	if err != nil {
		return nil, err
	}
	shown := sizeClassesView{Search: v.get(searchParameter), Only: v.get(onlyParameter), Known: len(list.Shapes)}
	for _, s := range list.Shapes {
		if !slices.Contains(shown.Projects, s.Project) {
			shown.Projects = append(shown.Projects, s.Project)
		}
		if (shown.Only == "" || shown.Only == s.Project) && matches(v, s.Shape, s.Project, s.About) {
			shown.Shapes = append(shown.Shapes, s)
		}
	}
	slices.Sort(shown.Projects)
	if shown.Only != "" && !slices.Contains(shown.Projects, shown.Only) {
		return nil, badParameter(onlyParameter, shown.Only, "sizes were learned of "+strings.Join(shown.Projects, ", "))
	}
	shown.Found = len(shown.Shapes)
	if shown.Order, err = sorted(v, shown.Shapes,
		by("learned", func(s apiclient.Shape) int64 { return -s.UpdatedAt.UnixNano() }),
		by("shape", func(s apiclient.Shape) string { return s.Shape }),
		by("project", func(s apiclient.Shape) string { return s.Project }),
		by("runs", func(s apiclient.Shape) int { return s.Runs }),
		by("next", func(s apiclient.Shape) string { return s.Next }),
	); err != nil {
		return nil, err
	}
	shown.Shapes, shown.Next, err = part(v, shown.Shapes, listed)
	out.Content = shown
	return out, err
}

type sizeClassView struct {
	diagnose.ShapeExplanation
	Classes []classView
	// From and To are the ends of the axis of the drawings, in seconds.
	From, To float64
}

// classView is a size class with a drawing of its samples.
type classView struct {
	diagnose.ClassHistory
	// Acceptable and Timeout are their places in the drawing; negative: they are not
	// known.
	Acceptable, Timeout float64
	Marks               []mark
}

// mark is a sample in a drawing.
type mark struct {
	X            float64
	Class, Title string
}

// sizeClass shows what was learned of one shape.
func (p *Pages) sizeClass(v *visit) (*view, error) {
	ref := v.PathValue("shape")
	e, err := v.api.Shape(v.Context(), ref, v.get(onlyParameter))
	if err != nil {
		return nil, err
	}
	out := &view{
		template: "sizeclass", Title: "Size classes of " + clip(e.About), Area: "/sizeclasses", Crumbs: []link{{"/sizeclasses", "Size classes"}},
		APIPath: "/api/v1/sizeclasses/" + segments(e.Shape), Command: "benchloom sizeclass show " + e.Shape,
	}
	out.Content = drawn(e)
	return out, nil
}

// axisWidth is the width of a drawing of samples, in units of its view box.
const axisWidth = 600

// drawn draws the samples of each class on one logarithmic axis, so that classes can be
// compared.
func drawn(e diagnose.ShapeExplanation) sizeClassView {
	shown := sizeClassView{ShapeExplanation: e, From: math.Inf(1), To: 0}
	reach := func(seconds float64) {
		if seconds > 0 {
			shown.From, shown.To = min(shown.From, seconds), max(shown.To, seconds)
		}
	}
	for _, c := range e.Classes {
		reach(c.AcceptableSeconds)
		reach(c.TimeoutSeconds)
		for _, s := range c.Samples {
			reach(s.Seconds)
		}
	}
	if shown.To == 0 {
		shown.From, shown.To = 1, 1
	}
	shown.From, shown.To = shown.From/1.5, shown.To*1.5
	at := func(seconds float64) float64 {
		if seconds <= 0 {
			return -1
		}
		return math.Round(axisWidth*math.Log(seconds/shown.From)/math.Log(shown.To/shown.From)*10) / 10
	}
	for _, c := range e.Classes {
		one := classView{ClassHistory: c, Acceptable: at(c.AcceptableSeconds), Timeout: at(c.TimeoutSeconds)}
		for _, s := range c.Samples {
			one.Marks = append(one.Marks, mark{X: max(0, at(s.Seconds)), Class: sampleClass(s, c), Title: fmt.Sprintf("%s, %.3g s: %s", s.Outcome, s.Seconds, s.Meaning)})
		}
		shown.Classes = append(shown.Classes, one)
	}
	return shown
}

// sampleClass returns the style of a sample, which shows what it says about its class.
func sampleClass(s diagnose.SizeSample, c diagnose.ClassHistory) string {
	switch {
	case !s.Succeeded():
		return "bad"
	case c.AcceptableSeconds > 0 && s.Seconds > c.AcceptableSeconds:
		return "warning"
	}
	return "good"
}

// beside writes a duration as a share of a bound; nothing if there is no bound.
func beside(seconds, bound float64) string {
	if bound <= 0 {
		return ""
	}
	return share(seconds / bound)
}

// Choices lists what is known of each class.
func (s sizeClassView) Choices() []diagnose.SizeChoice {
	out := make([]diagnose.SizeChoice, len(s.Classes))
	for i, c := range s.Classes {
		out[i] = c.SizeChoice
	}
	return out
}
