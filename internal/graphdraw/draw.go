package graphdraw

import (
	"cmp"
	"fmt"
	"slices"
)

// Node is one node of a graph.
type Node struct {
	// Group names the nodes that may share a box with this one, if they have the same State.
	Group, State string
}

// Edge leads from a node to one that needs it, both by their indexes. Kind tells lines apart.
type Edge struct {
	From, To int
	Kind     string
}

// Box stands for one node, or for several of one state.
type Box struct {
	// X and Y are the left upper corner, in units of the drawing.
	X, Y int
	// Layer is the column of the box, from 0.
	Layer int
	// Nodes are the indexes of the nodes that the box stands for, ascending.
	Nodes []int
	// Group is common to all nodes; empty: they are of several groups.
	Group, State string
}

// Line joins two boxes.
type Line struct {
	// Path is the value of the attribute d of an SVG path.
	Path string
	Kind string
}

// Drawing is a graph that is laid out. Boxes and lines are ordered from left to right.
type Drawing struct {
	// Width and Height are in units of the drawing.
	Width, Height int
	Boxes         []Box
	Lines         []Line
	// Layers is the longest way through the graph, counted in nodes.
	Layers int
	// Grouped reports that boxes stand for several nodes.
	Grouped bool
	// Omitted counts the lines that are left out because there would be too many.
	Omitted int
}

// Sizes of what is drawn, in units of the drawing.
const (
	BoxWidth, BoxHeight = 208, 44
	layerGap, boxGap    = 56, 12
	margin              = 8
)

// Bounds of a drawing.
const (
	// maxSingle bounds the nodes that have a box each, maxInLayer those of a layer.
	maxSingle, maxInLayer = 150, 24
	// maxBands bounds the columns, maxGroups the boxes in one.
	maxBands, maxGroups = 24, 12
	// maxLines bounds the lines.
	maxLines = 2000
)

// Draw lays a graph out. Edges that name no node, or lead back in a cycle, are not drawn.
func Draw(nodes []Node, edges []Edge) Drawing {
	edges = slices.DeleteFunc(slices.Clone(edges), func(e Edge) bool {
		return e.From < 0 || e.To < 0 || e.From >= len(nodes) || e.To >= len(nodes) || e.From == e.To
	})
	layer, layers := layersOf(len(nodes), edges)
	d := Drawing{Layers: layers}
	of := d.box(nodes, layer)
	lines := joined(of, d.Boxes, edges)
	d.place(lines)
	d.join(lines)
	return d
}

// layersOf gives each node the number of nodes on the longest way to it, and returns the longest of all.
func layersOf(n int, edges []Edge) (layer []int, layers int) {
	layer = make([]int, n)
	waits, dependents := make([]int, n), make([][]int, n)
	for _, e := range edges {
		waits[e.To]++
		dependents[e.From] = append(dependents[e.From], e.To)
	}
	var next []int
	for i := range n {
		if waits[i] == 0 {
			next = append(next, i)
		}
	}
	for at := 0; at < len(next); at++ { // next grows
		from := next[at]
		layers = max(layers, layer[from]+1)
		for _, to := range dependents[from] {
			layer[to] = max(layer[to], layer[from]+1)
			if waits[to]--; waits[to] == 0 {
				next = append(next, to)
			}
		}
	}
	for i := range n {
		layer[i] = min(layer[i], max(layers-1, 0)) // what is on a cycle
	}
	if n > 0 {
		layers = max(layers, 1)
	}
	return layer, layers
}

// box makes the boxes and returns which one each node is in.
func (d *Drawing) box(nodes []Node, layer []int) []int {
	width := make([]int, d.Layers)
	for _, l := range layer {
		width[l]++
	}
	d.Grouped = len(nodes) > maxSingle || d.Layers > maxBands || slices.ContainsFunc(width, func(n int) bool { return n > maxInLayer })
	type key struct {
		band         int
		group, state string
		node         int
	}
	band := func(i int) int { return layer[i] * min(d.Layers, maxBands) / d.Layers }
	keyOf := func(i int) key {
		if !d.Grouped {
			return key{layer[i], "", "", i}
		}
		return key{band(i), nodes[i].Group, nodes[i].State, 0}
	}
	groups := make(map[int]map[key]bool)
	if d.Grouped {
		for i := range nodes {
			k := keyOf(i)
			if groups[k.band] == nil {
				groups[k.band] = make(map[key]bool)
			}
			groups[k.band][k] = true
		}
	}
	of, known := make([]int, len(nodes)), make(map[key]int)
	for i, n := range nodes {
		k := keyOf(i)
		if len(groups[k.band]) > maxGroups {
			k.group = "" // too many: by their state alone
		}
		at, seen := known[k]
		if !seen {
			at = len(d.Boxes)
			known[k] = at
			d.Boxes = append(d.Boxes, Box{Layer: k.band, Group: n.Group, State: n.State})
		}
		if d.Boxes[at].Group != n.Group {
			d.Boxes[at].Group = ""
		}
		d.Boxes[at].Nodes = append(d.Boxes[at].Nodes, i)
		of[i] = at
	}
	return of
}

// between names a line between two boxes.
type between struct {
	from, to int
	kind     string
}

// joined returns the lines between boxes, each once.
func joined(of []int, boxes []Box, edges []Edge) []between {
	seen := make(map[between]bool)
	var lines []between
	for _, e := range edges {
		line := between{of[e.From], of[e.To], e.Kind}
		if boxes[line.from].Layer < boxes[line.to].Layer && !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return lines
}

// place orders the boxes of each layer and gives all of them their places.
func (d *Drawing) place(lines []between) {
	columns := make([][]int, min(d.Layers, maxBands))
	for i, b := range d.Boxes {
		columns[b.Layer] = append(columns[b.Layer], i)
	}
	needs := make([][]int, len(d.Boxes))
	for _, l := range lines {
		needs[l.to] = append(needs[l.to], l.from)
	}
	// The middle of each box, from -1 to 1, as far as it is placed already.
	middle, tallest := make([]float64, len(d.Boxes)), 0
	for _, column := range columns {
		for _, i := range column {
			for _, from := range needs[i] {
				middle[i] += middle[from] / float64(len(needs[i]))
			}
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		for place, i := range column {
			middle[i] = (2*float64(place)+1)/float64(len(column)) - 1
		}
		tallest = max(tallest, len(column))
	}
	height := func(boxes int) int { return boxes*(BoxHeight+boxGap) - boxGap }
	if len(d.Boxes) > 0 {
		d.Width, d.Height = 2*margin+len(columns)*(BoxWidth+layerGap)-layerGap, 2*margin+height(tallest)
	}
	for l, column := range columns {
		top := margin + (height(tallest)-height(len(column)))/2
		for place, i := range column {
			d.Boxes[i].X, d.Boxes[i].Y = margin+l*(BoxWidth+layerGap), top+place*(BoxHeight+boxGap)
		}
	}
}

// join draws the lines, and sorts boxes and lines.
func (d *Drawing) join(lines []between) {
	slices.SortStableFunc(lines, func(a, b between) int {
		from, to := d.Boxes[a.from], d.Boxes[b.from]
		return cmp.Or(cmp.Compare(from.Layer, to.Layer), cmp.Compare(from.Y, to.Y), cmp.Compare(d.Boxes[a.to].Y, d.Boxes[b.to].Y))
	})
	d.Omitted = max(0, len(lines)-maxLines)
	for _, l := range lines[:len(lines)-d.Omitted] {
		x, y := d.Boxes[l.from].X+BoxWidth, d.Boxes[l.from].Y+BoxHeight/2
		toX, toY := d.Boxes[l.to].X, d.Boxes[l.to].Y+BoxHeight/2
		bend := layerGap / 2
		d.Lines = append(d.Lines, Line{Kind: l.kind, Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, y, x+bend, y, toX-bend, toY, toX, toY)})
	}
	slices.SortStableFunc(d.Boxes, func(a, b Box) int { return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Y, b.Y)) })
}
