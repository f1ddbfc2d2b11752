package apiclient

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventsOf reads a whole stream.
func eventsOf(text string) (list []event, err error) {
	err = readEvents(strings.NewReader(text), func() {}, func(e event) (bool, error) {
		list = append(list, e)
		return true, nil
	})
	return list, err
}

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	list, err := eventsOf(": still here\n\nid: 1\nevent: samples\ndata: {}\n\nretry: 5\nid:2\ndata:a\r\ndata: b: c\r\n\r\ndata\n\nevent: nothing\n\ndata: cut off")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, []event{{"1", "samples", "{}"}, {"2", "", "a\nb: c"}, {"2", "", ""}}, list)

	// Whoever has enough reads no further.
	n := 0
	require.NoError(t, readEvents(strings.NewReader("data: 1\n\ndata: 2\n\n"), func() {}, func(event) (bool, error) { n++; return false, nil }))
	require.Equal(t, 1, n)
	_, err = eventsOf(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 100))
	require.ErrorIs(t, err, errEventTooLarge)
}

// Whatever is written as an event is read as such, and whatever else a stream has ends in an error, not in a panic.
func FuzzEvents(f *testing.F) {
	f.Add("id: 1\nevent: samples\ndata: {}\n\n", "7", "end", "a\nb")
	f.Add("data\r\n\r\n:", "", "", "")
	f.Fuzz(func(t *testing.T, text, id, name, data string) {
		list, err := eventsOf(text)
		require.Error(t, err)
		for _, e := range list {
			require.NotContains(t, e.id+e.name, "\n")
		}
		if strings.ContainsAny(id+name, "\r\n") || strings.Contains(data, "\r") {
			return
		}
		var written strings.Builder
		fmt.Fprintf(&written, "id: %s\nevent: %s\n", id, name)
		for line := range strings.SplitSeq(data, "\n") {
			fmt.Fprintf(&written, "data: %s\n", line)
		}
		list, err = eventsOf(written.String() + "\n")
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, []event{{id, name, data}}, list)
	})
}
