package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Escaper passes output of benchmarks to a terminal without letting it control the
// terminal: control sequences, which could write its clipboard, its title or lines above,
// appear as text such as \x1b[2J. Line breaks and tabs stay. Close it to get the incomplete
// end of a write.
//
// It is safe for concurrent use.
type Escaper struct {
	to   io.Writer
	mu   sync.Mutex
	held []byte // the beginning of a character, or of a line break
}

// NewEscaper returns an escaper that writes to a terminal.
func NewEscaper(to io.Writer) *Escaper { return &Escaper{to: to} }

// Write writes all of p, except for the beginning of a character at its end.
func (e *Escaper) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, rest := escape(append(e.held, p...), false)
	e.held = bytes.Clone(rest)
	if _, err := e.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the rest. It does not close the terminal.
func (e *Escaper) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, _ := escape(e.held, true)
	e.held = nil
	_, err := e.to.Write(text)
	return err
}

// Escape returns text with its control sequences visible, as an [Escaper] writes it.
func Escape(s string) string {
	text, _ := escape([]byte(s), true)
	return string(text)
}

// escape returns text with its control sequences visible. Unless p is the last piece, the part
// that may continue in the next one is returned as rest.
func escape(p []byte, last bool) (text, rest []byte) {
	for len(p) > 0 {
		if !last && (!utf8.FullRune(p) || len(p) == 1 && p[0] == '\r') {
			return text, p
		}
		r, size := utf8.DecodeRune(p)
		switch {
		case r == '\n', r == '\t', r == '\r' && len(p) > 1 && p[1] == '\n':
			text = append(text, p[0])
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && unicode.IsControl(r) && r != '\r':
			text = fmt.Appendf(text, `\x%02x`, p[0])
		case r == '\r':
			text = append(text, `\r`...)
		case obeyed(r):
			text = fmt.Appendf(text, `\u%04x`, r)
		default:
			text = append(text, p[:size]...)
		}
		p = p[size:]
	}
	return text, nil
}

// obeyed reports whether a terminal does more with a character than showing it: control
// characters, and those that change the direction of writing.
func obeyed(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
