package plan

import "github.com/benchloom/benchloom/internal/placement"

// Fleet lists the registered collectors, by name.
type Fleet []placement.Collector
