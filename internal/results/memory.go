package results

import (
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/spare"
	"github.com/benchloom/benchloom/internal/stats"
)

// memory holds the thousands of series of a comparison while it is made; the next reuses it.
type memory struct {
	stored []stats.Series
	series []report.Series
	told   []report.Stored
}

var memories spare.Memory[memory]

// free lets another comparison use the memory. Nothing may refer to it any more.
func (m *memory) free() {
	clear(m.stored) // nor may it keep results in memory
	clear(m.series)
	clear(m.told)
	memories.Put(m)
}
