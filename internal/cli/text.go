package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// WriteJSON writes a value as indented JSON. Characters that a terminal would obey are
// escaped.
func WriteJSON(w io.Writer, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	// Such characters are all within strings, where each has an escape: the encoder leaves only
	// those above the control characters of ASCII as they are.
	if _, err := io.WriteString(w, escapedJSON(text.String())); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// escapedJSON escapes control characters in the strings of a JSON document.
func escapedJSON(text string) string {
	control := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if control(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Duration formats a duration in at most two units: "850ms", "12s", "3m12s",
// "2h05m", "3d4h". Negative durations count as zero.
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

// Ago formats how long before now t was; "never" for the zero time.
func Ago(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case now.Sub(t) < time.Second:
		return "just now"
	}
	return Duration(now.Sub(t)) + " ago"
}

// moment formats a time in now's zone and how long ago it was; empty for nil or the
// zero time.
func moment(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(now.Location()).Format("2006-01-02 15:04:05 MST") + ", " + Ago(now, *t)
}

// Plural formats a number with its noun: "1 job", "2 jobs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Printable returns untrusted text as one line without control characters, which a
// terminal would obey.
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

// printableLines applies [Printable] to each line and indents it.
func printableLines(s, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(s, "\n")) {
		b.WriteString(indent + Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// words spells a status such as in_progress with spaces.
func words[S ~string](s S) string { return strings.ReplaceAll(string(s), "_", " ") }

// cut shortens text to width characters; if width is below 1, it returns s.
func cut(s string, width int) string {
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Fields writes pairs of name and value, one per line, without those whose value is
// empty.
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
