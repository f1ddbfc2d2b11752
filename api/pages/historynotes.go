package pages

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// historyNote is a remark on a line.
type historyNote struct {
	// At is the number of the artifact that the remark is about.
	At   int
	Text string
}

// note adds a remark about an artifact.
func (l *historyLine) note(at int, text string) { l.Notes = append(l.Notes, historyNote{at, text}) }

// remark returns the one copy of a text that several lines may have.
func (h *historyView) remark(text string) string {
	if same, known := h.remarks[text]; known {
		return same
	}
	if h.remarks == nil {
		h.remarks = make(map[string]string)
	}
	h.remarks[text] = text
	return text
}

// sharedNote is a remark on several lines.
type sharedNote struct {
	historyNote
	Lines int
}

// lineRemarks are the remarks on one line: its own, and a reference to those that it shares, such as "notes 1–3, 5".
type lineRemarks struct {
	Own    []string
	Shared string
}

// sharedBy is the number of lines from which a remark is shared: most lines begin anew with the same suite or kernel.
const sharedBy = 3

// shareNotes collects the remarks that lines share, by their artifacts, and gives each line the rest of its own.
func (h *historyView) shareNotes() {
	lines := make(map[historyNote]int)
	for _, c := range h.Charts {
		for _, l := range c.Lines {
			for _, n := range l.Notes {
				lines[n]++
			}
		}
	}
	for n, count := range lines {
		if count >= sharedBy {
			h.Notes = append(h.Notes, sharedNote{n, count})
		}
	}
	slices.SortFunc(h.Notes, func(a, b sharedNote) int { return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Text, b.Text)) })
	numbers := make(map[historyNote]int, len(h.Notes))
	for i, n := range h.Notes {
		numbers[n.historyNote] = i + 1
	}
	for i := range h.Charts {
		c := &h.Charts[i]
		c.Remarks = make([]lineRemarks, len(c.Lines))
		for k, l := range c.Lines {
			var shared []int
			for _, n := range l.Notes {
				if number, is := numbers[n]; is {
					shared = append(shared, number)
				} else {
					c.Remarks[k].Own = append(c.Remarks[k].Own, n.Text)
				}
			}
			switch len(shared) {
			case 0:
			case 1:
				c.Remarks[k].Shared = "note " + ranges(shared)
			default:
				c.Remarks[k].Shared = "notes " + ranges(shared)
			}
		}
	}
}

// ranges lists numbers in ascending order, those that follow each other as a range: "1–3, 5".
func ranges(numbers []int) string {
	slices.Sort(numbers)
	var out []byte
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if i > 0 {
			out = append(out, ", "...)
		}
		out = strconv.AppendInt(out, int64(numbers[i]), 10)
		if end > i {
			out = strconv.AppendInt(append(out, "–"...), int64(numbers[end]), 10)
		}
		i = end + 1
	}
	return string(out)
}
