package flame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

func parseFolded(r io.Reader) (*profile.Profile, error) {
	b := newBuilder(&profile.ValueType{Type: "samples", Unit: "count"})
	in := newLines(r)
	for in.next() {
		line := strings.TrimSpace(in.Text())
		if line == "" {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i <= 0 {
			return nil, in.wrong("a line is frames, a space and a number: %.80q", line)
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil || n < 0 {
			return nil, in.wrong("%.40q is no number of samples", line[i+1:])
		}
		var stack []frame
		for name := range strings.SplitSeq(strings.TrimSpace(line[:i]), ";") {
			stack = append(stack, frame{name: name})
		}
		slices.Reverse(stack)
		if err := b.add(stack, n); err != nil {
			return nil, err
		}
	}
	if err := in.failure(); err != nil {
		return nil, err
	}
	return b.done()
}

// foldedText keeps a name from being taken for several frames.
var foldedText = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// WriteFolded writes the stacks as lines of frames, outermost first, and a value, in
// alphabetical order. The sample type is the default one if it is empty.
func WriteFolded(w io.Writer, p *profile.Profile, sampleType string) error {
	i, err := index(p, sampleType)
	if err != nil {
		return err
	}
	total := map[string]int64{}
	for _, s := range p.Sample {
		var stack []string
		for _, f := range outermostFirst(s) {
			stack = append(stack, foldedText.Replace(f.name))
		}
		total[strings.Join(stack, ";")] += s.Value[i]
	}
	stacks := make([]string, 0, len(total))
	for s := range total {
		stacks = append(stacks, s)
	}
	slices.Sort(stacks)
	out := bufio.NewWriter(w)
	for _, s := range stacks {
		if _, err := fmt.Fprintf(out, "%s %d\n", s, total[s]); err != nil {
			return fmt.Errorf("writing folded stacks: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing folded stacks: %w", err)
	}
	return nil
}

// outermostFirst lists the frames of a sample, inlined ones included.
func outermostFirst(s *profile.Sample) []frame {
	frames := make([]frame, 0, len(s.Location))
	for _, l := range slices.Backward(s.Location) {
		object := ""
		if l.Mapping != nil {
			object = l.Mapping.File
		}
		if len(l.Line) == 0 {
			frames = append(frames, frame{name: perfSymbol("", object), object: object})
		}
		for _, line := range slices.Backward(l.Line) {
			f := frame{name: "[unknown]", object: object}
			if line.Function != nil {
				f.name, f.file = line.Function.Name, line.Function.Filename
			}
			frames = append(frames, f)
		}
	}
	return frames
}
