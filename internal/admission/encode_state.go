package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// request is an entry as it is written, with the fields in the order of the format's description.
type request struct {
	ID         bench.RequestID     `json:"id,omitempty"`
	Tag        string              `json:"tag,omitempty"`
	Type       bench.RequestType   `json:"type"`
	Parent     string              `json:"parent,omitempty"`
	PR         int                 `json:"pr,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	CommitDate *time.Time          `json:"commit_date,omitempty"`
	Status     bench.RequestStatus `json:"status"`
}

// EncodeState writes the state that an order depends on: the requests in the order given, and the finished tags (value
// true), sorted. [DecodeState] reads it back, with times in UTC. EncodeState refuses everything that DecodeState
// refuses.
func EncodeState(requests []Request, completed map[string]bool) ([]byte, error) {
	out := struct {
		Requests  []request `json:"requests"`
		Completed []string  `json:"completed"`
	}{Requests: make([]request, len(requests)), Completed: []string{}}
	for i, r := range requests {
		out.Requests[i] = request{
			ID: r.ID, Tag: r.Tag, Type: r.Type, Parent: r.ParentTag, PR: r.PR, CreatedAt: r.CreatedAt.UTC(), Status: r.Status,
		}
		if string(r.ID) == r.Tag {
			out.Requests[i].ID = "" // the tag stands for it
		}
		if !r.CommitDate.IsZero() {
			date := r.CommitDate.UTC()
			out.Requests[i].CommitDate = &date
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(completed)) {
		if completed[tag] {
			out.Completed = append(out.Completed, tag)
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the state file: %w", err)
	}
	if _, _, err := DecodeState(text); err != nil {
		return nil, fmt.Errorf("writing the state file: %w", errors.Unwrap(err))
	}
	return append(text, '\n'), nil
}
