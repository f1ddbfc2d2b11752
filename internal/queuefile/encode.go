package queuefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
)

// request is an entry as it is written. The order of the fields is that of the format's description.
type request struct {
	ID         string           `json:"id,omitempty"`
	Tag        string           `json:"tag,omitempty"`
	Type       admission.Type   `json:"type"`
	Parent     string           `json:"parent,omitempty"`
	PR         int              `json:"pr,omitempty"`
	CreatedAt  time.Time        `json:"created_at"`
	CommitDate *time.Time       `json:"commit_date,omitempty"`
	Status     admission.Status `json:"status"`
}

// Encode writes a queue's state: the requests in the order given and the tags that are finished (value true), sorted.
// [Decode] reads it back, with times in UTC. It refuses what the format cannot hold, which is what Decode refuses.
func Encode(requests []admission.Request, completed map[string]bool) ([]byte, error) {
	out := struct {
		Requests  []request `json:"requests"`
		Completed []string  `json:"completed"`
	}{Requests: make([]request, len(requests)), Completed: []string{}}
	for i, r := range requests {
		out.Requests[i] = request{
			ID: r.ID, Tag: r.Tag, Type: r.Type, Parent: r.ParentTag, PR: r.PR, CreatedAt: r.CreatedAt.UTC(), Status: r.Status,
		}
		if r.ID == r.Tag {
			out.Requests[i].ID = "" // it goes by its tag
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
		return nil, fmt.Errorf("writing the queue's state: %w", err)
	}
	if _, _, err := Decode(text); err != nil {
		return nil, fmt.Errorf("writing the queue's state: %w", errors.Unwrap(err))
	}
	return append(text, '\n'), nil
}

// Entry is a request's place as it is written.
type Entry struct {
	// ID is the request's; its tag where none was given.
	ID  string `json:"id"`
	Tag string `json:"tag"`
	// Position counts from 1.
	Position int `json:"position"`
	// Level is [admission.Position.Level].
	Level int `json:"level"`
	// Reason says in words why the request stands there.
	Reason string `json:"reason"`
	// Admissible is set when the request may start once there is a free slot.
	Admissible bool `json:"admissible"`
}

// Order is an order as it is written.
type Order struct {
	Order []Entry `json:"order"`
}

// NewOrder makes what is written of an order.
func NewOrder(positions []admission.Position) Order {
	o := Order{Order: make([]Entry, len(positions))}
	for i, p := range positions {
		o.Order[i] = Entry{
			ID: p.Request.ID, Tag: p.Request.Tag, Position: p.Place + 1, Level: p.Level, Reason: p.Reason, Admissible: p.Admissible,
		}
	}
	return o
}
