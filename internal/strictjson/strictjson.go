// Package strictjson refuses documents that encoding/json would silently
// change: text that is not UTF-8, which it replaces by U+FFFD, and duplicate
// keys, of which it takes the last.
//
// It must not decode: the decoder reports whether a document is JSON at all.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Check returns an error if decoding would change or drop a part of the
// document. Names of the outermost object are compared ignoring case, as
// encoding/json does.
func Check(text []byte) error {
	if at := invalid(text); at >= 0 {
		return fmt.Errorf("the byte %#02x at offset %d is no UTF-8: it would be changed; send text only, and other bytes in a file or encoded, such as by base64", text[at], at)
	}
	if at := unpaired(text); at >= 0 {
		return fmt.Errorf("%s at offset %d is half a character: it would be changed; send text only, and other bytes in a file or encoded, such as by base64", text[at:at+6], at)
	}
	return twice(text)
}

// invalid returns the offset of the first byte that is not UTF-8, or -1.
func invalid(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}

// unpaired returns the offset of the first escaped surrogate without its other
// half, or -1. Some languages encode bytes that are not text this way.
func unpaired(text []byte) int {
	unit := func(at int) uint64 {
		if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
			return 0
		}
		u, _ := strconv.ParseUint(string(text[at+2:at+6]), 16, 16) // 0 for what is none
		return u
	}
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], '\\')
		if next < 0 {
			return -1
		}
		at += next
		switch first := unit(at); {
		case first >= 0xd800 && first < 0xdc00:
			if second := unit(at + 6); second < 0xdc00 || second > 0xdfff {
				return at
			}
			at += 12
		case first >= 0xdc00 && first <= 0xdfff:
			return at
		default:
			at = min(at+2, len(text)) // the backslash and what it escapes
		}
	}
}

// level is an object or a list being read.
type level struct {
	keys map[string]bool // nil for a list
	// value: a key was read, and its value comes next.
	value bool
}

// twice returns an error that names the first duplicate key.
func twice(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // the values of numbers do not matter
	var open []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // its end, or not JSON: the decoder reports it
		}
		if len(open) > 0 {
			top := &open[len(open)-1]
			if key, ok := token.(string); ok && top.keys != nil && !top.value {
				name := key
				if len(open) == 1 {
					name = strings.ToLower(key)
				}
				if top.keys[name] {
					return fmt.Errorf("the key %.40q is there twice: one of its values would be dropped; leave one out", key)
				}
				top.keys[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{keys: make(map[string]bool)})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if len(open) == 0 {
				return nil // what follows is not part of it
			}
		}
	}
}
