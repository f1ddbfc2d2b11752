package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// WriteJSON writes a value as indented JSON, as the API spells it.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// Duration writes a length of time for people, in at most two units: "850ms",
// "12s", "3m12s", "2h05m", "3d4h". Negative ones are zero.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Ago writes how long before now something was; "never" for the zero time.
func Ago(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case now.Sub(t) < time.Second:
		return "just now"
	}
	return Duration(now.Sub(t)) + " ago"
}

// moment writes a point in time in now's zone, with how long ago that is; empty
// for none.
func moment(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(now.Location()).Format("2006-01-02 15:04:05 MST") + ", " + Ago(now, *t)
}

// Plural writes a number with its noun: "1 job", "2 jobs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Printable makes text from elsewhere safe for a terminal, which obeys control
// characters, in one line.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || r == utf8.RuneError:
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// printableLines is [Printable] line by line, each with an indentation.
func printableLines(s, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(s, "\n")) {
		b.WriteString(indent + Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// words spells a status such as in_progress for people.
func words[S ~string](s S) string { return strings.ReplaceAll(string(s), "_", " ") }

// cut shortens a text to a number of characters; below 1 it stays as it is.
func cut(s string, width int) string {
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Fields writes pairs of a name and a value below each other; those without a
// value are left out.
func Fields(w io.Writer, pairs ...[2]string) error {
	longest := 0
	for _, p := range pairs {
		if p[1] != "" {
			longest = max(longest, utf8.RuneCountInString(p[0]))
		}
	}
	var b strings.Builder
	for _, p := range pairs {
		if p[1] != "" {
			fmt.Fprintf(&b, "  %-*s  %s\n", longest, p[0], Printable(p[1]))
		}
	}
	return write(w, b.String())
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
