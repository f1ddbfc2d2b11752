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

// Explanation gives the reasons for the size class of a job.
type Explanation struct {
	// Pinned names the source of a class that a person has chosen; empty: nobody has.
	Pinned string
	// Selection would be made now.
	Selection sizeclass.Selection
}

// Explain explains the size class of a job from the fleet and the statistics of its
// shape; it neither selects nor learns. It fails when the job can run nowhere or its
// project's configuration cannot be read; Pinned is set all the same.
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
		// Its results are to be compared: it does not run to learn.
		e.Selection, err = analyzer.Explain(occupied(known, now), question)
	}
	if err != nil {
		return e, fmt.Errorf("job %s: %w", j.Key, err)
	}
	return e, nil
}

// ReadStatistics decodes the stored statistics of a shape; the zero value where nothing
// is stored. Statistics that cannot be read are an error, and are learned anew.
func ReadStatistics(text json.RawMessage) (sizeclass.Statistics, error) {
	if len(text) == 0 || string(text) == "null" {
		return sizeclass.Statistics{}, nil
	}
	return sizeclass.Read(text)
}
