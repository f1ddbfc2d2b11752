package pages

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"strings"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/chart"
)

// maxKeptCharts bounds the drawings that are kept, in bytes: those of some fifteen histories
// of thousands of artifacts.
const maxKeptCharts = 12 << 20

// keptChart is a drawing with what is said of its lines.
type keptChart struct {
	ID    string
	SVG   template.HTML
	Lines []historyLine // without their points
	Plot  chart.Plot
	// log is set if its scale is logarithmic.
	log bool
}

// size estimates the memory of a chart in bytes.
func (c keptChart) size() int {
	const perLine = 600 // of the structure itself
	n := len(c.SVG)
	for _, l := range c.Lines {
		n += perLine + len(l.Name) + len(l.Compare)
		for _, note := range l.Notes {
			n += len(note)
		}
	}
	return n
}

// keptCharts keeps drawings by what they show: most charts of a history are those of the one
// before, with other words or in another order. The charts that were unused for longest are
// dropped.
type keptCharts struct {
	cache *ttlcache.Cache[string, keptChart]
}

func newKeptCharts(bytes uint64) keptCharts {
	return keptCharts{ttlcache.New(ttlcache.WithMaxCost(bytes, func(item ttlcache.CostItem[string, keptChart]) uint64 {
		return uint64(len(item.Key) + item.Value.size())
	}))}
}

// of returns the drawings that suit a history.
func (k keptCharts) of(h *historyView) *suitableCharts {
	look := []string{h.Pin}
	for _, c := range h.Choices {
		look = append(look, c.Value)
	}
	return &suitableCharts{cache: k.cache, view: h, look: fmt.Sprintf("%q", look), found: make(map[string]keptChart)}
}

// suitableCharts are those that look as one visitor has asked for.
type suitableCharts struct {
	cache *ttlcache.Cache[string, keptChart]
	view  *historyView
	look  string
	// found are those that were asked for and are there: they may be dropped meanwhile.
	found map[string]keptChart
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
		return s.found[c.Digest]
	}
	drawn, lines := s.view.draw(c)
	one := keptChart{
		ID: drawn.ID, SVG: template.HTML(strings.Clone(drawn.SVG())), //nolint:gosec // the package escapes what others have written; the clone has no spare memory
		Lines: lines, Plot: drawn.Plot(), log: drawn.Log,
	}
	for i, l := range lines {
		lines[i].HistoryLine = apiclient.HistoryLine{Name: l.Name, Points: l.Count()}
	}
	if c.Digest != "" {
		s.cache.Set(c.Digest+s.look, one, ttlcache.NoTTL)
	}
	return one
}

// chartID returns the ID of a chart's element, which is the same wherever it stands.
func chartID(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	return fmt.Sprintf("chart-%016x", sum.Sum64())
}
