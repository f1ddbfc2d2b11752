package flame

import (
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Drawing is a flame graph to be drawn. Its boxes grow with the page, its letters do not.
type Drawing struct {
	// ID distinguishes drawings on one page.
	ID    string
	Title string
	Graph Graph
	// Search marks the functions whose names contain it, regardless of case; empty marks none.
	Search string
	// Link returns the address that zooms in on a frame; nil if the frames are no links.
	Link func(id string) string
}

// Measures of a drawing in pixels.
const (
	rowHeight = 18
	// widest is the width of a page up to which names are written as far as they fit.
	widest = 1600
	// letterWidth assumes an average letter at the drawing's font size. A name of fewer
	// than leastLetters tells nothing.
	letterWidth  = 6.6
	leastLetters = 3
	// DrawnBoxes bounds a drawing in a file.
	DrawnBoxes = 20_000
)

// SVG draws the flame graph. Colours are those of classes: by name (hue-0 to hue-5), or, in a
// difference, by how much larger (more-1 to more-4) or smaller (less-1 to less-4) the
// share of a frame in B is.
func (d Drawing) SVG() string {
	rows := 1
	for _, b := range d.Graph.Boxes {
		rows = max(rows, b.Depth+1)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="flame" width="100%%" height="%d" role="group" aria-labelledby="%s-title" font-size="12" font-family="ui-monospace, monospace">`,
		rows*rowHeight, escape(d.ID))
	fmt.Fprintf(&out, `<title id="%s-title">%s</title>`, escape(d.ID), escape(d.Title))
	search := strings.ToLower(d.Search)
	for _, b := range d.Graph.Boxes {
		d.box(&out, b, search)
	}
	out.WriteString(`</svg>`)
	return out.String()
}

// box draws a box as a drawing of its own, which cuts its name where it ends.
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
	letters := int((b.Width*widest - 6) / letterWidth)
	linked := d.Link != nil && b.ID != ""
	if linked {
		narrow := ""
		if letters < leastLetters { // the Tab key leads through what can be read
			narrow = ` tabindex="-1"`
		}
		fmt.Fprintf(out, `<a href="%s"%s>`, escape(d.Link(b.ID)), narrow)
	}
	fmt.Fprintf(out, `<svg class="%s" x="%s%%" y="%d" width="%s%%" height="%d"><title>%s</title><rect width="100%%" height="%d"/>`,
		class, number(b.X*100), b.Depth*rowHeight, number(b.Width*100), rowHeight, escape(name+": "+d.told(b)), rowHeight-1)
	if letters >= leastLetters {
		fmt.Fprintf(out, `<text x="3" y="13">%s</text>`, escape(shortened(name, letters)))
	}
	out.WriteString(`</svg>`)
	if linked {
		out.WriteString(`</a>`)
	}
}

// told describes the values of a frame.
func (d Drawing) told(b Box) string {
	g := d.Graph
	words := fmt.Sprintf("%s, %s of all", Amount(b.Total, g.Unit), percent(Share(b.Total, g.Sum)))
	if g.IsDifference {
		words += fmt.Sprintf("; before: %s, %s", Amount(b.BeforeTotal, g.Unit), percent(Share(b.BeforeTotal, g.BeforeSum)))
	}
	if b.Self > 0 {
		words += fmt.Sprintf("; itself %s", percent(Share(b.Self, g.Sum)))
	}
	return words
}

func (d Drawing) class(b Box) string {
	if !d.Graph.IsDifference {
		h := fnv.New32a()
		h.Write([]byte(b.Name))
		return "hue-" + strconv.Itoa(int(h.Sum32()%6))
	}
	change := Share(b.Total, d.Graph.Sum) - Share(b.BeforeTotal, d.Graph.BeforeSum)
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

// shortened cuts a name to a number of letters.
func shortened(name string, letters int) string {
	if utf8.RuneCountInString(name) <= letters {
		return name
	}
	return string([]rune(name)[:letters-1]) + "…"
}

// number writes a part of the width in percent; nobody sees a hundredth of a pixel.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64) }

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
// control characters that change text direction are replaced.
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
