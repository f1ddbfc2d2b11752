package flame

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/google/pprof/profile"
)

// The processed profile format of the Firefox Profiler, which samply writes
// (https://github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md): tables of columns, in each
// thread or, in newer versions, shared by all.
type (
	firefoxFile struct {
		Meta struct {
			Version int `json:"preprocessedProfileVersion"`
			Units   struct {
				CPU string `json:"threadCPUDelta"`
			} `json:"sampleUnits"`
		} `json:"meta"`
		Shared  firefoxTables `json:"shared"`
		Threads []struct {
			firefoxTables
			Name    string `json:"name"`
			Samples struct {
				Stack  []*int     `json:"stack"`
				Weight []*float64 `json:"weight"`
				// CPU is the CPU time since the sample before.
				CPU []*float64 `json:"threadCPUDelta"`
			} `json:"samples"`
		} `json:"threads"`
	}
	firefoxTables struct {
		Strings []string `json:"stringArray"`
		Stacks  *struct {
			Prefix []*int `json:"prefix"`
			Frame  []int  `json:"frame"`
		} `json:"stackTable"`
		Frames *struct {
			Func []int `json:"func"`
		} `json:"frameTable"`
		Funcs *struct {
			Name     []int  `json:"name"`
			File     []*int `json:"fileName"`
			Resource []int  `json:"resource"`
		} `json:"funcTable"`
		Resources *struct {
			Name []int `json:"name"`
		} `json:"resourceTable"`
	}
)

// orElse takes missing tables from those that all threads share.
func (t firefoxTables) orElse(shared firefoxTables) firefoxTables {
	if t.Strings == nil {
		t.Strings = shared.Strings
	}
	if t.Stacks == nil {
		t.Stacks = shared.Stacks
	}
	if t.Frames == nil {
		t.Frames = shared.Frames
	}
	if t.Funcs == nil {
		t.Funcs = shared.Funcs
	}
	if t.Resources == nil {
		t.Resources = shared.Resources
	}
	return t
}

// nanoseconds gives the length of each unit of CPU time.
var nanoseconds = map[string]float64{"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6}

// parseFirefox reads a profile of samply. Each sample counts by its weight; if threads tell their CPU time, that is the type
// shown. Parts recorded without symbols have the names of their libraries, with addresses.
func parseFirefox(r io.Reader) (*profile.Profile, error) {
	var f firefoxFile
	if err := readJSON(r, &f); err != nil {
		return nil, err
	}
	if f.Meta.Version == 0 {
		return nil, fmt.Errorf("%w: it does not tell its preprocessedProfileVersion; save it from samply or the Firefox Profiler", ErrNotAProfile)
	}
	unit, timed := nanoseconds[f.Meta.Units.CPU]
	some := false
	for i := range f.Threads {
		for _, v := range f.Threads[i].Samples.CPU {
			some = some || v != nil && *v > 0
		}
	}
	timed = timed && some
	types := []*profile.ValueType{{Type: "samples", Unit: "count"}}
	if timed {
		types = append(types, &profile.ValueType{Type: "cpu", Unit: "nanoseconds"})
	}
	b := newBuilder(types...)
	for i := range f.Threads {
		t := &f.Threads[i]
		tables := t.firefoxTables.orElse(f.Shared)
		// Samples by their stacks, of which there are fewer.
		order, values := []int{}, map[int][2]float64{}
		for n, stack := range t.Samples.Stack {
			if stack == nil {
				continue
			}
			v, known := values[*stack]
			if !known {
				order = append(order, *stack)
			}
			v[0] += at(t.Samples.Weight, n, 1)
			v[1] += at(t.Samples.CPU, n, 0) * unit
			values[*stack] = v
		}
		for _, stack := range order {
			frames, err := tables.stack(stack)
			if err != nil {
				return nil, fmt.Errorf("%w: thread %d: %w", ErrNotAProfile, i+1, err)
			}
			v := values[stack]
			if !(math.Abs(v[0]) < math.MaxInt64/2 && math.Abs(v[1]) < math.MaxInt64/2) {
				return nil, fmt.Errorf("%w: thread %d: its values are too large to be added up", ErrNotAProfile, i+1)
			}
			counted := []int64{int64(math.Round(v[0])), int64(math.Round(v[1]))}
			if err := b.add(frames, counted[:len(types)]...); err != nil {
				return nil, err
			}
		}
	}
	return b.done()
}

// at returns a value of a column that may be missing.
func at(column []*float64, i int, otherwise float64) float64 {
	switch {
	case i >= len(column):
		return otherwise
	case column[i] == nil:
		return 0
	}
	return *column[i]
}

// stack returns the frames of a stack, the innermost first.
func (t firefoxTables) stack(i int) ([]frame, error) {
	if t.Stacks == nil || t.Frames == nil || t.Funcs == nil {
		return nil, fmt.Errorf("it lacks one of stackTable, frameTable and funcTable")
	}
	var frames []frame
	for at := &i; at != nil; {
		n := *at
		if n < 0 || n >= len(t.Stacks.Frame) || n >= len(t.Stacks.Prefix) {
			return nil, fmt.Errorf("there is no stack %d", n)
		}
		f, err := t.frame(t.Stacks.Frame[n])
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
		// A caller stands before what it calls: nothing goes in circles.
		if at = t.Stacks.Prefix[n]; at != nil && *at >= n {
			return nil, fmt.Errorf("stack %d is called by stack %d, which comes after it", n, *at)
		}
		if len(frames) == MaxDepth {
			break
		}
	}
	return frames, nil
}

func (t firefoxTables) frame(i int) (f frame, err error) {
	if i < 0 || i >= len(t.Frames.Func) {
		return f, fmt.Errorf("there is no frame %d", i)
	}
	function := t.Frames.Func[i]
	if function < 0 || function >= len(t.Funcs.Name) {
		return f, fmt.Errorf("there is no function %d", function)
	}
	if f.name, err = t.text(t.Funcs.Name[function]); err != nil {
		return f, err
	}
	if function < len(t.Funcs.File) && t.Funcs.File[function] != nil {
		if f.file, err = t.text(*t.Funcs.File[function]); err != nil {
			return f, err
		}
	}
	if r := t.Resources; r != nil && function < len(t.Funcs.Resource) && t.Funcs.Resource[function] >= 0 && t.Funcs.Resource[function] < len(r.Name) {
		if f.object, err = t.text(r.Name[t.Funcs.Resource[function]]); err != nil {
			return f, err
		}
	}
	if strings.HasPrefix(f.name, "0x") && f.object != "" {
		f.name = f.object + " " + f.name
	}
	return f, nil
}

func (t firefoxTables) text(i int) (string, error) {
	if i < 0 || i >= len(t.Strings) {
		return "", fmt.Errorf("there is no string %d", i)
	}
	return t.Strings[i], nil
}
