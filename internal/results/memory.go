package results

import (
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/spare"
	"github.com/benchloom/benchloom/internal/stats"
)

// memory holds the series of a comparison while it is made: thousands of them, for whose memory
// the next one need not ask again.
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
