package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/cli"
)

func TestEscapeShowsWhatTerminalsObey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"plain text":           {"ok\tgin 1.5s ±2 %\n", "ok\tgin 1.5s ±2 %\n"},
		"line break of others": {"a\r\nb", "a\r\nb"},
		"writing over a line":  {"FAIL\rok  ", `FAIL\rok  `},
		"clipboard":            {"\x1b]52;c;cm0gLXJmIH4=\a", `\x1b]52;c;cm0gLXJmIH4=\x07`},
		"title":                {"\x1b]0;root@host\x1b\\", `\x1b]0;root@host\x1b\`},
		"cursor":               {"\x1b[3A\x1b[2K", `\x1b[3A\x1b[2K`},
		"one-byte control":     {"\u009b2J", `\u009b2J`},
		"the same, bare":       {"\x9b2J", `\x9b2J`},
		"delete":               {"ab\x7f\b", `ab\x7f\x08`},
		"direction":            {"\u202egnp.exe", `\u202egnp.exe`},
		"broken character":     {"\xe2\x82", `\xe2\x82`},
		"nothing":              {"", ""},
	} {
		require.Equal(t, c[1], cli.Escape(c[0]), name)
	}
}

func TestEscaperJoinsPieces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"±\x1b[2J\r\nnext\r", "\xe2\x82", "€\u009b"} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			e := cli.NewEscaper(&out)
			for rest := text; rest != ""; {
				n, err := e.Write([]byte(rest[:min(size, len(rest))]))
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.NoError(t, e.Close())
			require.Equal(t, cli.Escape(text), out.String(), "%q in pieces of %d", text, size)
		}
	}
}

func TestEscaperReportsAClosedTerminal(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	e := cli.NewEscaper(failing{gone})
	_, err := e.Write([]byte("x"))
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, e.Close(), gone)
}

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzEscape(f *testing.F) {
	f.Add("\x1b]52;c;AAAA\a", 3)
	f.Add("±\r\n\x9b", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		escaped := cli.Escape(text)
		require.True(t, utf8.ValidString(escaped))
		bad := strings.ContainsFunc(strings.ReplaceAll(escaped, "\r\n", "\n"), func(r rune) bool {
			return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control)
		})
		require.False(t, bad, "%q", escaped)
		require.Equal(t, escaped, cli.Escape(escaped), "what is visible stays")
		at = max(0, min(at, len(text)))
		var out bytes.Buffer
		e := cli.NewEscaper(&out)
		for _, piece := range []string{text[:at], text[at:]} {
			_, err := e.Write([]byte(piece))
			require.NoError(t, err)
		}
		require.NoError(t, e.Close())
		require.Equal(t, escaped, out.String())
	})
}

func TestJSONControlsNoTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, cli.WriteJSON(&out, map[string]string{"message": "\x1b[2J\u009b2J\x7f±"}))
	require.Contains(t, out.String(), `"\u001b[2J\u009b2J\u007f±"`)
}
