package flame

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Drawing is a flame graph to be drawn: the outermost frames at the top, each as wide as
// its share of the samples.
type Drawing struct {
	// ID distinguishes drawings on one page.
	ID    string
	Title string
	Tree  Tree
	// At is the ID of the frame that takes the whole width; empty: the root.
	At string
	// Search marks the functions whose names contain it, regardless of case; empty: none.
	Search string
	// Link returns the address that zooms in on a frame; nil: the frames are no links.
	Link func(id string) string
}

// Measures of a drawing, in its units.
const (
	drawnWidth = 1200
	rowHeight  = 18
	// narrowest is the width of the narrowest box.
	narrowest = 1.5
	// letterWidth assumes an average letter at the drawing's font size. A name of fewer
	// than leastLetters tells nothing.
	letterWidth  = 6.6
	leastLetters = 3
	// maxBoxes bounds a drawing.
	maxBoxes = 20_000
)

// SVG draws the flame graph. Colours are those of classes: by name (hue-0 to hue-5), or, in a
// difference, by how much larger (more-1 to more-4) or smaller (less-1 to less-4) the
// share of a frame in B is.
func (d Drawing) SVG() string {
	path := []*Frame{d.Tree.Root}
	if d.At != "" {
		if found := d.Tree.Find(d.At); found != nil {
			path = found
		}
	}
	boxes := Boxes(path, narrowest/drawnWidth)
	boxes = boxes[:min(len(boxes), maxBoxes)]
	rows := 1
	for _, b := range boxes {
		rows = max(rows, b.Depth+1)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="flame" viewBox="0 0 %d %d" role="group" aria-labelledby="%s-title" font-size="12" font-family="ui-monospace, monospace">`,
		drawnWidth, rows*rowHeight, escape(d.ID))
	fmt.Fprintf(&out, `<title id="%s-title">%s</title>`, escape(d.ID), escape(d.Title))
	search := strings.ToLower(d.Search)
	for _, b := range boxes {
		d.box(&out, b, search)
	}
	out.WriteString(`</svg>`)
	return out.String()
}

func (d Drawing) box(out *strings.Builder, b Box, search string) {
	name, class := b.Name, d.class(b)
	if b.Others > 0 {
		name, class = fmt.Sprintf("%d others", b.Others), class+" others"
	}
	if search != "" && b.Others == 0 {
		if strings.Contains(strings.ToLower(b.Name), search) {
			class += " found"
		} else {
			class += " passed"
		}
	}
	linked := d.Link != nil && b.ID != ""
	if linked {
		fmt.Fprintf(out, `<a href="%s">`, escape(d.Link(b.ID)))
	}
	x, y, width := b.X*drawnWidth, b.Depth*rowHeight, b.Width*drawnWidth
	fmt.Fprintf(out, `<g class="%s"><title>%s</title><rect x="%s" y="%d" width="%s" height="%d"/>`,
		class, escape(name+": "+d.told(b)), number(x), y, number(max(width-.5, .5)), rowHeight-1)
	if letters := int((width - 6) / letterWidth); letters >= leastLetters {
		fmt.Fprintf(out, `<text x="%s" y="%d">%s</text>`, number(x+3), y+13, escape(shortened(name, letters)))
	}
	out.WriteString(`</g>`)
	if linked {
		out.WriteString(`</a>`)
	}
}

// told describes the values of a frame.
func (d Drawing) told(b Box) string {
	root := d.Tree.Root
	words := fmt.Sprintf("%s, %s of all", Amount(b.Total, d.Tree.Unit), percent(Share(b.Total, root.Total)))
	if d.Tree.IsDifference {
		words += fmt.Sprintf("; before: %s, %s", Amount(b.BeforeTotal, d.Tree.Unit), percent(Share(b.BeforeTotal, root.BeforeTotal)))
	}
	if b.Self > 0 {
		words += fmt.Sprintf("; itself %s", percent(Share(b.Self, root.Total)))
	}
	return words
}

func (d Drawing) class(b Box) string {
	if !d.Tree.IsDifference {
		h := fnv.New32a()
		h.Write([]byte(b.Name))
		return "hue-" + strconv.Itoa(int(h.Sum32()%6))
	}
	root := d.Tree.Root
	change := Share(b.Total, root.Total) - Share(b.BeforeTotal, root.BeforeTotal)
	for i, least := range []float64{.1, .03, .01, .002} { // of all samples
		switch {
		case change >= least:
			return "more-" + strconv.Itoa(4-i)
		case change <= -least:
			return "less-" + strconv.Itoa(4-i)
		}
	}
	return "same"
}

// shortened cuts a name to so many letters.
func shortened(name string, letters int) string {
	if utf8.RuneCountInString(name) <= letters {
		return name
	}
	return string([]rune(name)[:letters-1]) + "…"
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 32) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Amount writes a value with its unit for people: "1.25 s", "3.4 MiB", "12,000".
func Amount(v int64, unit string) string {
	f := float64(v)
	switch unit {
	case "nanoseconds":
		switch {
		case f >= 1e9:
			return fmt.Sprintf("%.2f s", f/1e9)
		case f >= 1e6:
			return fmt.Sprintf("%.1f ms", f/1e6)
		}
		return fmt.Sprintf("%.1f µs", f/1e3)
	case "bytes":
		switch {
		case f >= 1<<30:
			return fmt.Sprintf("%.2f GiB", f/(1<<30))
		case f >= 1<<20:
			return fmt.Sprintf("%.1f MiB", f/(1<<20))
		case f >= 1<<10:
			return fmt.Sprintf("%.1f KiB", f/(1<<10))
		}
		return fmt.Sprintf("%d B", v)
	}
	text := strconv.FormatInt(v, 10)
	first := len(text) % 3
	if v < 0 {
		return text
	}
	var groups []string
	if first > 0 {
		groups = append(groups, text[:first])
	}
	for i := first; i < len(text); i += 3 {
		groups = append(groups, text[i:i+3])
	}
	text = strings.Join(groups, ",")
	if unit == "" || unit == "count" {
		return text
	}
	return text + " " + unit
}

// escape makes a text safe inside elements and attributes. Names come from programs under test;
// control characters that turn text around are replaced.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
			return '�'
		}
		return r
	}, s)
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(s)); err != nil {
		return "" // a strings.Builder takes everything
	}
	return out.String()
}
