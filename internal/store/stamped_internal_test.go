package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A value is read once for each stamp, and its stamp once for each state of the record.
func TestAStampedValueIsReadWhenItsStampChanges(t *testing.T) {
	t.Parallel()
	s := newStamped[string, int](2)
	record := struct{ seen, stamp string }{"a", "1"}
	stamps, reads := 0, 0
	get := func() int {
		value, err := s.get("key",
			func() (string, error) { return record.seen, nil },
			func() (string, error) { stamps++; return record.stamp, nil },
			func() (int, error) { reads++; return reads, nil })
		require.NoError(t, err)
		return value
	}
	for _, step := range []struct {
		seen, stamp          string
		value, stamps, reads int
	}{
		{"a", "1", 1, 1, 1},
		{"a", "1", 1, 1, 1},
		{"b", "1", 1, 2, 1}, // something else was written
		{"b", "1", 1, 2, 1},
		{"c", "2", 2, 3, 2},
		{"c", "2", 2, 3, 2},
	} {
		record.seen, record.stamp = step.seen, step.stamp
		require.Equal(t, step.value, get())
		require.Equal(t, []int{step.stamps, step.reads}, []int{stamps, reads})
	}
}
