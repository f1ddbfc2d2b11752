package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/cli"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1500 * time.Microsecond: "2ms", 12*time.Second + 900*time.Millisecond: "12s",
		3*time.Minute + 7*time.Second: "3m07s", 2*time.Hour + 5*time.Minute + 59*time.Second: "2h05m", 76 * time.Hour: "3d4h",
	} {
		require.Equal(t, want, cli.Duration(d))
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	require.Equal(t, "never", cli.Ago(now, time.Time{}))
	require.Equal(t, "just now", cli.Ago(now, now))
	require.Equal(t, "just now", cli.Ago(now, now.Add(time.Minute)), "clocks differ")
	require.Equal(t, "1m05s ago", cli.Ago(now, now.Add(-65*time.Second)))
}

// Control characters must not reach the terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b �[31mc", cli.Printable("a\nb \x1b[31mc"))
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := cli.NewTable(cli.Column{Heading: "name"}, cli.Column{Heading: "empty"}, cli.Column{Heading: "n", Right: true}, cli.Column{Heading: "message", Flex: true})
	table.Row("short", "", "5", "")
	table.Row("a longer näme", "", "1234", "what can be said about it")
	write := func(width int) string {
		var b strings.Builder
		require.NoError(t, table.Write(&b, width))
		return b.String()
	}
	t.Run("a column without content is not shown", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, `name              n  message
short             5
a longer näme  1234  what can be said about it
`, write(0))
	})
	t.Run("the flex column gives way to the terminal", func(t *testing.T) {
		t.Parallel()
		for line := range strings.Lines(write(40)) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 40)
		}
		require.Contains(t, write(40), "what can be said a…")
	})
	t.Run("but not without end", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, write(5), "what can be…")
	})
}

func TestBar(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[----------]", cli.Bar(0, 0, 10))
	require.Equal(t, "[#####-----]", cli.Bar(5, 10, 10))
	require.Equal(t, "[#########-]", cli.Bar(999, 1000, 10), "full only when everything is done")
	require.Equal(t, "[##########]", cli.Bar(12, 10, 10))
}

func TestScreenRedrawsInPlace(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := cli.NewScreen(&b)
	require.NoError(t, s.Draw([]string{"one", "two"}))
	require.NoError(t, s.Draw([]string{"three"}))
	require.Equal(t, "\rone\x1b[K\ntwo\x1b[K\n\x1b[J"+"\x1b[2A\rthree\x1b[K\n\x1b[J", b.String())
}
