package sizing

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/store"
)

// Explanation explains the size class of a job.
type Explanation struct {
	// Pinned names the source of a class that was chosen by a person; empty: none was.
	Pinned string
	// Selection is the selection that would be made now.
	Selection sizeclass.Selection
}

// Explain explains the size class of a job from the fleet and the statistics of its
// shape; it neither selects nor learns. It fails if no collector can run the job or its
// project's configuration cannot be read, but sets Pinned even then.
func Explain(fleet plan.Fleet, j store.Sizing, known sizeclass.Statistics, now time.Time) (Explanation, error) {
	config, analyzer, err := Sizes{}.analyzer(j)
	var e Explanation
	switch {
	case j.Pinned:
		e.Pinned = "a request that waits for it"
	case config.Size.Pin() != 0:
		e.Pinned = "project " + j.Project
	}
	if err != nil {
		return e, err
	}
	question := ask(fleet, config, j, offered(fleet, config, j), now)
	e.Selection, err = analyzer.Explain(known, question)
	if err == nil && j.Command == nil && slices.ContainsFunc(e.Selection.Choices, func(c sizeclass.Choice) bool { return c.Succeeded > 0 }) {
		// Results that will be compared must not come from a probe.
		e.Selection, err = analyzer.Explain(occupied(known, now), question)
	}
	if err != nil {
		return e, fmt.Errorf("job %s: %w", j.Key, err)
	}
	return e, nil
}

// ReadStatistics decodes the stored statistics of a shape; the zero value if none are
// stored. Unreadable statistics are an error and will be learned anew.
func ReadStatistics(text json.RawMessage) (sizeclass.Statistics, error) {
	if len(text) == 0 || string(text) == "null" {
		return sizeclass.Statistics{}, nil
	}
	return sizeclass.Read(text)
}
