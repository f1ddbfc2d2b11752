package jobrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPhasesOfACommand(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_700_000_000, 0)
	end := begin.Add(10 * time.Second)
	at := func(seconds float64) string { return fmt.Sprintf("%.3f", 1_700_000_000+seconds) }
	for name, c := range map[string]struct {
		lines   []string
		want    []string // name, begin and end in seconds after the command's
		ignored string
	}{
		"a phase":              {lines: []string{"begin a " + at(1), "end a " + at(3)}, want: []string{"a 1 3"}},
		"the same one twice":   {lines: []string{"begin a " + at(1), "end a " + at(2), "begin a " + at(3), "end a " + at(4)}, want: []string{"a 1 2", "a 3 4"}},
		"phases that overlap":  {lines: []string{"begin a " + at(1), "begin b " + at(2), "end a " + at(3), "end b " + at(4)}, want: []string{"a 1 3", "b 2 4"}},
		"one that never ends":  {lines: []string{"begin a " + at(1)}, want: []string{"a 1 10"}},
		"only its length":      {lines: []string{"phase a 4"}, want: []string{"a 6 10"}},
		"words after a tab":    {lines: []string{"\tphase\ta\t4 "}, want: []string{"a 6 10"}},
		"no line at all":       {},
		"an end without begin": {lines: []string{"end a " + at(1)}, ignored: "1 of 1 lines are ignored; line 1: a has not begun"},
		"begun twice":          {lines: []string{"begin a " + at(1), "begin a " + at(2)}, want: []string{"a 1 10"}, ignored: "line 2: a has begun already"},
		"an end before begin":  {lines: []string{"begin a " + at(3), "end a " + at(1)}, want: []string{"a 3 10"}, ignored: "line 2: a has not begun"},
		"another clock":        {lines: []string{"begin a 12.5"}, ignored: "line 1: a lies outside of its command"},
		"an hour later":        {lines: []string{"begin a " + at(3600)}, ignored: "line 1: a lies outside of its command"},
		"longer than it may":   {lines: []string{"phase a 11"}, ignored: "line 1: a is longer than its command"},
		"no number":            {lines: []string{"phase a NaN", "phase a -1", "phase a 1e300", "phase a x"}, ignored: "4 of 4 lines are ignored; line 1: \"NaN\" is no number of seconds"},
		"a control character":  {lines: []string{"phase a\x1b[31m 1"}, ignored: "line 1: a name has at most 80 bytes"},
		"a long name":          {lines: []string{"phase " + strings.Repeat("a", 81) + " 1"}, ignored: "line 1: a name has at most 80 bytes"},
		"a long line":          {lines: []string{"phase a 1", strings.Repeat("x", 100_000), "phase b 2"}, want: []string{"a 9 10", "b 8 10"}, ignored: "1 of 3 lines are ignored; line 2: it is longer than 256 bytes"},
		"a line of a megabyte": {lines: []string{strings.Repeat("x", 2<<20), "phase b 2"}, ignored: "1 of 1 lines are ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			phases, ignored := readPhases(strings.NewReader(strings.Join(c.lines, "\n")), begin, end)
			var got []string
			for _, p := range phases {
				got = append(got, fmt.Sprintf("%s %.4g %.4g", p.name, p.begin.Sub(begin).Seconds(), p.end.Sub(begin).Seconds()))
			}
			require.Equal(t, c.want, got)
			if c.ignored == "" {
				require.Empty(t, ignored)
			}
			require.Contains(t, ignored, c.ignored)
		})
	}
}

func TestPhasesThatNeverEndAreBounded(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&lines, "begin phase%d 1700000001\n", n)
	}
	begin := time.Unix(1_700_000_000, 0)
	phases, ignored := readPhases(strings.NewReader(lines.String()), begin, begin.Add(time.Minute))
	require.Len(t, phases, maxPhases)
	require.Contains(t, ignored, "what follows the first 1000 is left out")
}

// Whatever a command writes, its phases lie within it, and are few.
func FuzzPhases(f *testing.F) {
	f.Add("begin link 1700000001.25\nend link 1700000003\nphase parse 0.5\n")
	f.Add("begin a 1e9\nend a -1\nphase a 8999999999\nbegin a 8999999999")
	f.Fuzz(func(t *testing.T, text string) {
		begin := time.Unix(1_700_000_000, 0)
		end := begin.Add(10 * time.Second)
		phases, _ := readPhases(strings.NewReader(text), begin, end)
		require.LessOrEqual(t, len(phases), maxPhases)
		for _, p := range phases {
			require.NotEmpty(t, p.name)
			require.LessOrEqual(t, len(p.name), maxPhaseNameBytes)
			require.False(t, p.begin.Before(begin) || p.end.After(end) || p.end.Before(p.begin), "%s from %s to %s", p.name, p.begin, p.end)
		}
	})
}
