package flame

import (
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// perfHeader matches the first line of a sample: "go 18322/18323 [001] 8203.60: 2004008 cpu-clock:u: ".
var perfHeader = regexp.MustCompile(`^\s*(\S.*?)\s+-?\d+(?:/-?\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d+)\s+)?(\S+?):?\s*$`)

// perfFrame matches a frame; the innermost one comes first: "	  47a2b1 main.main+0x11 (/tmp/p)".
var perfFrame = regexp.MustCompile(`^\s+([0-9a-f]+)\s+(.*?)(?:\+0x[0-9a-f]+)?\s+\((.*)\)\s*$`)

// perfClocks are the events whose period counts nanoseconds.
var perfClocks = map[string]bool{"cpu-clock": true, "task-clock": true}

// parsePerfScript reads the output of 'perf script'. A sample has as many values as there are
// events, and one for the number of samples.
func parsePerfScript(r io.Reader) (*profile.Profile, error) {
	b := newBuilder(&profile.ValueType{Type: "samples", Unit: "count"})
	types := map[string]int{}
	var stack []frame
	var value int64
	event := -1
	end := func() error {
		if event < 0 {
			return nil
		}
		if len(stack) == 0 {
			stack = append(stack, frame{name: "[unknown]"})
		}
		values := make([]int64, event+1)
		values[0], values[event] = 1, value
		event = -1
		return b.add(stack, values...)
	}
	in := newLines(r)
	for in.next() {
		line := in.Text()
		switch {
		case strings.TrimSpace(line) == "":
			if err := end(); err != nil {
				return nil, err
			}
		case strings.HasPrefix(line, "#"):
		case event >= 0 && perfFrame.MatchString(line):
			if m := perfFrame.FindStringSubmatch(line); len(stack) < MaxDepth {
				stack = append(stack, frame{name: perfSymbol(m[2], m[3]), object: m[3]})
			}
		default:
			m := perfHeader.FindStringSubmatch(line)
			if m == nil {
				return nil, in.wrong("neither a sample nor a frame of one: %.80q", line)
			}
			if err := end(); err != nil {
				return nil, err
			}
			stack, value = stack[:0], 1
			if m[2] != "" {
				var err error
				if value, err = strconv.ParseInt(m[2], 10, 64); err != nil {
					return nil, in.wrong("the period %s is too large", m[2])
				}
			}
			// "cpu-clock:u" counts the same, in user mode only.
			name, _, _ := strings.Cut(m[3], ":")
			var known bool
			if event, known = types[name]; !known {
				if len(types) == 16 {
					return nil, in.wrong("there are more than 16 events")
				}
				unit := "count"
				if perfClocks[name] {
					unit = "nanoseconds"
				}
				b.p.SampleType = append(b.p.SampleType, &profile.ValueType{Type: cut(name), Unit: unit})
				event = len(b.p.SampleType) - 1
				types[name] = event
			}
		}
	}
	if err := in.failure(); err != nil {
		return nil, err
	}
	if err := end(); err != nil {
		return nil, err
	}
	return b.done()
}

// perfSymbol names a frame without a symbol after its object file.
func perfSymbol(symbol, object string) string {
	if symbol == "" || symbol == "[unknown]" {
		return "[" + strings.Trim(path.Base(object), "[]") + "]"
	}
	return symbol
}
