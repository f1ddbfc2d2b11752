package flame

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/pprof/profile"
)

// dhatFile has version 2 of the format of valgrind's DHAT: places of a program with their
// allocations. Other modes than heap count calls of its client requests.
type dhatFile struct {
	Version int    `json:"dhatFileVersion"`
	Mode    string `json:"mode"`
	// Lives tells whether the places know how long blocks lived, and so how much existed at once.
	Lives  bool `json:"bklt"`
	Places []struct {
		Bytes  int64 `json:"tb"`
		Blocks int64 `json:"tbk"`
		AtMax  int64 `json:"gb"`
		AtEnd  int64 `json:"eb"`
		Frames []int `json:"fs"` // the innermost first
	} `json:"pps"`
	Frames []string `json:"ftbl"`
}

// parseDHAT reads the output of DHAT. Its types are those of Go's heap profiles: everything allocated, the blocks that
// existed at the peak, and those at the end.
func parseDHAT(r io.Reader) (*profile.Profile, error) {
	var f dhatFile
	if err := readJSON(r, &f); err != nil {
		return nil, err
	}
	if f.Version != 2 {
		return nil, fmt.Errorf("%w: it is of version %d of DHAT's format, and only version 2 is known", ErrNotAProfile, f.Version)
	}
	unit := "bytes"
	if f.Mode == "ad-hoc" {
		unit = "units"
	}
	types := []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}}
	if f.Lives {
		types = append(types, &profile.ValueType{Type: "end_space", Unit: unit}, &profile.ValueType{Type: "max_space", Unit: unit})
	}
	b := newBuilder(append(types, &profile.ValueType{Type: "alloc_space", Unit: unit})...)
	frames := make([]frame, len(f.Frames))
	for i, text := range f.Frames {
		frames[i] = dhatFrame(text)
	}
	for i, p := range f.Places {
		stack := make([]frame, 0, len(p.Frames))
		for _, at := range p.Frames {
			if at < 0 || at >= len(frames) {
				return nil, fmt.Errorf("%w: place %d has the frame %d of %d", ErrNotAProfile, i+1, at, len(frames))
			}
			stack = append(stack, frames[at])
		}
		values := []int64{p.Blocks}
		if f.Lives {
			values = append(values, p.AtEnd, p.AtMax)
		}
		if err := b.add(stack, append(values, p.Bytes)...); err != nil {
			return nil, err
		}
	}
	return b.done()
}

// dhatFrame reads a frame such as "0x109169: hoard (p.c:3)" or "0x48417B4: malloc (in /usr/lib/x.so)".
func dhatFrame(text string) frame {
	if address, rest, found := strings.Cut(text, ": "); found && strings.HasPrefix(address, "0x") {
		text = rest
	}
	at := strings.LastIndex(text, " (")
	if at <= 0 || !strings.HasSuffix(text, ")") {
		return frame{name: text}
	}
	place := text[at+2 : len(text)-1]
	if object, is := strings.CutPrefix(place, "in "); is {
		return frame{name: text[:at], object: object}
	}
	file, _, _ := strings.Cut(place, ":")
	return frame{name: text[:at], file: file}
}

// readJSON reads a file of at most MaxPprof bytes, compressed or not.
func readJSON(r io.Reader, into any) error {
	unpacked, err := unpack(r)
	if err != nil {
		return err
	}
	// A decoder would ignore anything after the value: a file is one value.
	data, err := io.ReadAll(&boundedReader{r: unpacked, left: MaxPprof, most: MaxPprof})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	return nil
}
