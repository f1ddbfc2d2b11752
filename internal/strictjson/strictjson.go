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
	"slices"
	"strconv"
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
	object bool
	// key: what comes next is a key.
	key bool
	// keys holds the names in the object so far, without quotes and escapes; many are in known, too.
	keys  [][]byte
	known map[string]bool
}

// many is the number of keys from which they are looked up in a map.
const many = 16

// add adds a key and reports whether it was there already.
func (l *level) add(key []byte) (again bool) {
	if l.known == nil {
		if slices.ContainsFunc(l.keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			return true
		}
		l.keys = append(l.keys, key)
		if len(l.keys) == many {
			l.known = make(map[string]bool)
			for _, k := range l.keys {
				l.known[string(k)] = true
			}
		}
		return false
	}
	again = l.known[string(key)]
	l.known[string(key)] = true
	return again
}

// twice returns an error that names the first duplicate key. It reads the text once: requests
// of collectors hold thousands of values.
func twice(text []byte) error {
	if !json.Valid(text) {
		return nil // the decoder reports it
	}
	var open []level
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '{', '[':
			open = descend(open, text[at] == '{')
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			open[len(open)-1].key = open[len(open)-1].object
		case '"':
			begin := at
			at = endOf(text, begin)
			if len(open) == 0 || !open[len(open)-1].key {
				continue
			}
			open[len(open)-1].key = false
			key := plain(text[begin : at+1])
			name := key
			if len(open) == 1 {
				name = bytes.ToLower(key)
			}
			if open[len(open)-1].add(name) {
				return fmt.Errorf("the key %.40q is there twice: one of its values would be dropped; leave one out", key)
			}
		}
	}
	return nil
}

// descend adds a level, with the memory of one that was there before.
func descend(open []level, object bool) []level {
	if n := len(open); n < cap(open) {
		open = open[:n+1]
		open[n] = level{object: object, key: object, keys: open[n].keys[:0]}
		return open
	}
	return append(open, level{object: object, key: object})
}

// endOf returns the offset of the quote that ends the string that begins at an offset.
func endOf(text []byte, begin int) int {
	at := begin + 1
	for text[at] != '"' {
		if text[at] == '\\' {
			at++ // what it escapes
		}
		at++
	}
	return at
}

// plain returns the value of a string.
func plain(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return []byte(s)
}
