package admission

import "github.com/benchloom/benchloom/internal/bench"

// Listing is an order in the format of `benchloom queue simulate`.
type Listing struct {
	Order []ListedRequest `json:"order"`
}

// ListedRequest is a request's position in a [Listing].
type ListedRequest struct {
	// ID is the request's ID, or its tag if it has none.
	ID  bench.RequestID `json:"id"`
	Tag string          `json:"tag"`
	// Position counts from 1.
	Position int `json:"position"`
	// Level has the meaning of [Position.Level].
	Level int `json:"level"`
	// Reason explains the position in words.
	Reason string `json:"reason"`
	// Admissible is set when the request may start once there is a free slot.
	Admissible bool `json:"admissible"`
}

// NewListing returns the listing of an order.
func NewListing(positions []Position) Listing {
	l := Listing{Order: make([]ListedRequest, len(positions))}
	for i, p := range positions {
		l.Order[i] = ListedRequest{
			ID: p.Request.ID, Tag: p.Request.Tag, Position: p.Index + 1, Level: p.Level, Reason: p.Reason, Admissible: p.Admissible,
		}
	}
	return l
}
