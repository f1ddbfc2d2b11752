package cli

import (
	"io"
	"strconv"

	"github.com/benchloom/benchloom/internal/queuefile"
)

// Order writes the order of requests.
func Order(w io.Writer, o queuefile.Order, v View) error {
	if len(o.Order) == 0 {
		return write(w, "No request is pending.\n")
	}
	t := NewTable(Column{Heading: "position", Right: true}, Column{Heading: "request"}, Column{Heading: "tag"}, Column{Heading: "level", Right: true},
		Column{Heading: "may start"}, Column{Heading: "reason", Flex: true})
	for _, e := range o.Order {
		t.Row(strconv.Itoa(e.Position), e.ID, e.Tag, strconv.Itoa(e.Level), yes(e.Admissible), e.Reason)
	}
	return t.Write(w, v.Width)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
