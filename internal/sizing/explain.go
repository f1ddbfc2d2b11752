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

// Explanation is how the size class of a job comes about.
type Explanation struct {
	// Pinned says who has chosen it; empty: nobody.
	Pinned string
	// Selection is what would be selected now.
	Selection sizeclass.Selection
}

// Explain tells how the size class of a job comes about, from what is registered and
// what is known of its shape. Nothing is selected or learned by it. It is an error
// when the job can run nowhere, or its project's configuration cannot be read; who has
// chosen its class is told all the same.
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

// ReadStatistics reads what is stored of a shape; of one of which nothing is known
// yet it is the zero value. What cannot be read comes with an error, and is learned
// anew.
func ReadStatistics(text json.RawMessage) (sizeclass.Statistics, error) {
	if len(text) == 0 || string(text) == "null" {
		return sizeclass.Statistics{}, nil
	}
	return sizeclass.Read(text)
}
