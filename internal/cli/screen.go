package cli

import (
	"fmt"
	"io"
	"strings"
)

// Screen redraws a few lines in place at the bottom of a terminal, using only ANSI
// escape sequences. Lines must not be wider than the terminal.
type Screen struct {
	w     io.Writer
	drawn int
}

// NewScreen returns a screen on the terminal w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Draw replaces the lines drawn last.
func (s *Screen) Draw(lines []string) error {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	b.WriteString("\r")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	return write(s.w, b.String())
}

// Bar returns a progress bar of width ASCII characters between brackets. It is full
// only when everything is done.
func Bar(done, total, width int) string {
	filled := 0
	if total > 0 {
		filled = min(width, max(0, width*done/total))
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "]"
}
