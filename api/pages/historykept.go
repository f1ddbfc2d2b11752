package pages

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html/template"

	"github.com/jellydator/ttlcache/v3"
	"github.com/klauspost/compress/s2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/chart"
)

// maxKeptCharts bounds the drawings that are kept, in bytes: those of some hundred histories
// of thousands of artifacts.
const maxKeptCharts = 8 << 20

// keptChart is a drawing with the words about its lines.
type keptChart struct {
	ID    string
	SVG   template.HTML
	Lines []historyLine
	Plot  chart.Plot
	// log is set if its scale is logarithmic.
	log bool
}

// packedChart is a drawing in a fourth of its memory.
type packedChart struct {
	keptChart // without its SVG
	svg       []byte
}

// packChart compresses the SVG of a drawing, quickly: most parts of a history are looked at once.
func packChart(c keptChart) packedChart {
	svg := s2.Encode(nil, []byte(c.SVG))
	c.SVG = ""
	return packedChart{c, bytes.Clone(svg)} // without spare memory
}

// unpack returns the drawing.
func (c packedChart) unpack() keptChart {
	svg, err := s2.Decode(nil, c.svg)
	if err != nil {
		panic("pages: reading a kept drawing: " + err.Error()) // it was written by packChart: cannot happen
	}
	drawn := c.keptChart
	drawn.SVG = template.HTML(svg) //nolint:gosec // it was one before
	return drawn
}

// size estimates the memory of a chart in bytes.
func (c packedChart) size() int {
	const perLine, perNote = 200, 24 // of the structures themselves
	n := len(c.svg)
	for _, l := range c.Lines {
		n += perLine + len(l.Name) + len(l.Compare)
		for _, note := range l.Notes { // though others may have the same text
			n += perNote + len(note.Text)
		}
	}
	return n
}

// keptCharts keeps drawings by their content: most charts of a history are also in the previous
// one, with other words or in another order. The charts that were unused for longest are
// dropped.
type keptCharts struct {
	cache *ttlcache.Cache[string, packedChart]
}

func newKeptCharts(bytes uint64) keptCharts {
	return keptCharts{ttlcache.New(ttlcache.WithMaxCost(bytes, func(item ttlcache.CostItem[string, packedChart]) uint64 {
		return uint64(len(item.Key) + item.Value.size())
	}))}
}

// of returns the drawings that suit a history.
func (k keptCharts) of(h *historyView) *suitableCharts {
	look := []string{h.Pin}
	for _, c := range h.Choices {
		look = append(look, c.Value)
	}
	return &suitableCharts{cache: k.cache, view: h, look: fmt.Sprintf("%q", look), found: make(map[string]packedChart)}
}

// suitableCharts are the drawings that look as one visitor has asked for.
type suitableCharts struct {
	cache *ttlcache.Cache[string, packedChart]
	view  *historyView
	look  string
	// found holds the requested drawings that are there: the cache may drop them meanwhile.
	found map[string]packedChart
}

// Has implements [apiclient.Drawings].
func (s *suitableCharts) Has(digest string) bool {
	item := s.cache.Get(digest + s.look)
	if item == nil {
		return false
	}
	s.found[digest] = item.Value()
	return true
}

// draw returns the drawing of a chart.
func (s *suitableCharts) draw(c apiclient.HistoryChart) keptChart {
	if c.Drawn {
		return s.found[c.Digest].unpack()
	}
	drawn, lines := s.view.draw(c)
	one := keptChart{
		ID: drawn.ID, SVG: template.HTML(drawn.SVG()), //nolint:gosec // the package escapes what others have written
		Lines: lines, Plot: drawn.Plot(), log: drawn.Log,
	}
	if c.Digest != "" {
		s.cache.Set(c.Digest+s.look, packChart(one), ttlcache.NoTTL)
	}
	return one
}

// chartID returns the ID of a chart's element, which is the same wherever it stands.
func chartID(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	return fmt.Sprintf("chart-%016x", sum.Sum64())
}
