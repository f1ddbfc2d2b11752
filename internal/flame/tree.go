package flame

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Frame is a function below its callers.
type Frame struct {
	Name, File string
	// ID names the frame by its own name and those of its callers: it is the same in
	// two profiles of the same program.
	ID string
	// Self is the value of the function itself below these callers, Total includes what it
	// called. In a difference they belong to B.
	Self, Total int64
	// BeforeSelf and BeforeTotal belong to A in a difference.
	BeforeSelf, BeforeTotal int64
	// Children are in alphabetical order, which two profiles share.
	Children []*Frame
}

// Tree is a profile by its stacks. Its root stands for all samples.
type Tree struct {
	Type, Unit string
	Root       *Frame
	// IsDifference tells whether the frames have values of A.
	IsDifference bool
}

// NewTree merges the stacks of a profile; an empty type means the default. Negative values, which
// subtracted profiles have, count as 0.
func NewTree(p *profile.Profile, sampleType string) (Tree, error) {
	i, err := index(p, sampleType)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Type: p.SampleType[i].Type, Unit: p.SampleType[i].Unit, Root: &Frame{Name: "all"}}
	g := grower{}
	g.grow(t.Root, p, i, false)
	t.Root.settle("")
	return t, nil
}

// NewDifference merges the stacks of two profiles.
func NewDifference(a, b *profile.Profile, sampleType string) (Tree, error) {
	before, err := index(a, sampleType)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Type: a.SampleType[before].Type, Unit: a.SampleType[before].Unit, Root: &Frame{Name: "all"}, IsDifference: true}
	after, err := index(b, t.Type)
	if err != nil {
		return Tree{}, err
	}
	g := grower{}
	g.grow(t.Root, a, before, true)
	g.grow(t.Root, b, after, false)
	t.Root.settle("")
	return t, nil
}

// grower finds the children of a frame while a tree grows.
type grower map[*Frame]map[string]*Frame

func (g grower) grow(root *Frame, p *profile.Profile, i int, before bool) {
	count := func(f *Frame, v int64, isSelf bool) {
		total, self := &f.Total, &f.Self
		if before {
			total, self = &f.BeforeTotal, &f.BeforeSelf
		}
		*total = sum(*total, v)
		if isSelf {
			*self = sum(*self, v)
		}
	}
	for _, s := range p.Sample {
		v := s.Value[i]
		if v <= 0 {
			continue
		}
		at := root
		frames := outermostFirst(s)
		count(at, v, len(frames) == 0)
		for depth, f := range frames {
			child := g[at][f.name]
			if child == nil {
				child = &Frame{Name: f.name, File: f.file}
				if g[at] == nil {
					g[at] = map[string]*Frame{}
				}
				g[at][f.name], at.Children = child, append(at.Children, child)
			}
			at = child
			count(at, v, depth == len(frames)-1)
		}
	}
}

// settle orders the children and names the frames.
func (f *Frame) settle(above string) {
	h := fnv.New64a()
	h.Write([]byte(above + "\x00" + f.Name))
	f.ID = strconv.FormatUint(h.Sum64(), 36)
	slices.SortFunc(f.Children, func(a, b *Frame) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range f.Children {
		c.settle(f.ID)
	}
}

// Find returns the frames from the root to the one with an ID; none if there is no such frame.
func (t Tree) Find(id string) []*Frame { return t.Root.find(id) }

func (f *Frame) find(id string) []*Frame {
	if f.ID == id {
		return []*Frame{f}
	}
	for _, c := range f.Children {
		if path := c.find(id); path != nil {
			return append([]*Frame{f}, path...)
		}
	}
	return nil
}

// Matched returns the value of all samples with a function whose name contains the text,
// regardless of case, anywhere in their stacks. An empty text matches nothing.
func (t Tree) Matched(text string) int64 {
	if text == "" {
		return 0
	}
	return t.Root.matched(strings.ToLower(text))
}

func (f *Frame) matched(text string) (v int64) {
	if strings.Contains(strings.ToLower(f.Name), text) {
		return f.Total
	}
	for _, c := range f.Children {
		v = sum(v, c.matched(text))
	}
	return v
}

// Box is a frame as it is drawn.
type Box struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	// ID is the frame's, empty for others.
	ID          string `json:"id,omitempty"`
	Self        int64  `json:"self"`
	Total       int64  `json:"total"`
	BeforeSelf  int64  `json:"before_self,omitempty"`
	BeforeTotal int64  `json:"before_total,omitempty"`
	// Depth counts from the outermost frame, 0.
	Depth int `json:"depth"`
	// X and Width are parts of the whole width.
	X     float64 `json:"x"`
	Width float64 `json:"width"`
	// Others is the number of frames that the box stands for together, if these are too
	// narrow to be drawn one by one. It has their values, and no ID.
	Others int `json:"others,omitempty"`
}

func boxOf(f *Frame, depth int, x, width float64) Box {
	return Box{
		Name: f.Name, File: f.File, ID: f.ID, Self: f.Self, Total: f.Total, BeforeSelf: f.BeforeSelf, BeforeTotal: f.BeforeTotal,
		Depth: depth, X: x, Width: width,
	}
}

// Graph is a tree as it is drawn: the outermost frames at the top, each as wide as its share.
type Graph struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	// IsDifference tells whether the boxes have values of A; their widths are those of B.
	IsDifference bool `json:"is_difference,omitempty"`
	// Sum is the value of all samples, BeforeSum that of A.
	Sum       int64 `json:"sum"`
	BeforeSum int64 `json:"before_sum,omitempty"`
	// At is the ID of the frame that has the whole width, below its callers; empty for the root.
	At string `json:"at,omitempty"`
	// Boxes begin with the outermost one; callers stand before what they called.
	Boxes []Box `json:"boxes"`
}

// narrowest is the part of the whole width below which no box is drawn: 1.5 of 1200 pixels.
const narrowest = 1.5 / 1200

// Lay lays out a frame and what it called; the root if no frame has the ID. The limit of boxes is most, but not
// below the frames of a stack: the narrowest are drawn together until it holds.
func (t Tree) Lay(at string, most int) Graph {
	g := Graph{Type: t.Type, Unit: t.Unit, IsDifference: t.IsDifference, Sum: t.Root.Total, BeforeSum: t.Root.BeforeTotal}
	path := []*Frame{t.Root}
	if at != "" && at != t.Root.ID {
		if found := t.Find(at); found != nil {
			path, g.At = found, at
		}
	}
	const fewest = MaxDepth + 1 // a path is never shortened
	for least := narrowest; ; least *= 2 {
		if g.Boxes = Boxes(path, least); len(g.Boxes) <= max(most, fewest) || least >= 1 {
			return g
		}
	}
}

// Boxes lays out a frame and what it called, without frames narrower than the least part of
// the whole width; several such neighbours become one box. The callers of the frame, as
// [Tree.Find] returns them, lie above it at full width. A difference has the widths of B.
func Boxes(path []*Frame, least float64) []Box {
	if len(path) == 0 {
		return nil
	}
	var boxes []Box
	for depth, f := range path[:len(path)-1] {
		boxes = append(boxes, boxOf(f, depth, 0, 1))
	}
	zoomed := path[len(path)-1]
	l := layout{whole: float64(zoomed.Total), least: least, boxes: boxes}
	if l.whole > 0 {
		l.place(zoomed, len(path)-1, 0)
	} else { // gone in B: it is named, and has nothing below it
		l.boxes = append(l.boxes, boxOf(zoomed, len(path)-1, 0, 1))
	}
	return l.boxes
}

type layout struct {
	whole, least float64
	boxes        []Box
}

func (l *layout) place(f *Frame, depth int, x float64) {
	l.boxes = append(l.boxes, boxOf(f, depth, x, float64(f.Total)/l.whole))
	if depth >= MaxDepth {
		return
	}
	others := Box{Depth: depth + 1}
	for _, c := range f.Children {
		width := float64(c.Total) / l.whole
		if width >= l.least {
			l.place(c, depth+1, x)
			x += width
		} else if width > 0 || c.BeforeTotal > 0 {
			others.Others++
			others.Total, others.Self = sum(others.Total, c.Total), sum(others.Self, c.Self)
			others.BeforeTotal, others.BeforeSelf = sum(others.BeforeTotal, c.BeforeTotal), sum(others.BeforeSelf, c.BeforeSelf)
			others.Width += width
		}
	}
	// They lie together at the end: there may be thousands between two wide ones.
	if others.X = x; others.Others > 0 && others.Width >= l.least {
		l.boxes = append(l.boxes, others)
	}
}
