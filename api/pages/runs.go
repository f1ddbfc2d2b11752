package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// lineParameter is the number of a line of a log; the page shows the lines around it.
const lineParameter = "line"

type runView struct {
	apiclient.RunDetail
	Facts []fact
	Log   logView
	// Profile shows the samples of the run.
	Profile profileView
	Values  []apiclient.RunResult
	// Made lists the profile made by the run; nil: it measures.
	Made *madeProfiles
	// Files are the run's kept files.
	Files []keptFile
	// Next continues the values; empty: there are no more.
	Next string
}

// Untold returns the message of the run, unless one of its errors, which are shown as well, says it.
func (r runView) Untold() string {
	for _, e := range r.Errors {
		if e.Message != "" && strings.Contains(r.Message, e.Message) {
			return ""
		}
	}
	return r.Message
}

// run shows one attempt at a job.
func (p *Pages) run(v *visit) (*view, error) {
	id := bench.RunID(v.PathValue("run"))
	out := &view{template: "run", APIPath: "/api/v1/runs/" + segments(id), Command: "benchloom logs " + string(id.Job())}
	line := 0
	if given := v.get(lineParameter); given != "" {
		var err error
		if line, err = strconv.Atoi(given); err != nil || line < 1 {
			return nil, badParameter(lineParameter, given, "lines are numbered from 1")
		}
	}
	asked, err := readProfileQuery(v)
	if err != nil {
		return nil, err
	}
	r, err := v.api.Run(v.Context(), id)
	if err != nil {
		return nil, err
	}
	if err := v.live(out, "job:"+string(r.Job)); err != nil {
		return nil, err
	}
	// Read again: what was read before the revision may be older than that.
	if r, err = v.api.Run(v.Context(), id); err != nil {
		return nil, err
	}
	shown := runView{RunDetail: r, Facts: factsOf(r.Facts)}
	text, err := readLog(v, id)
	if err != nil {
		return nil, err
	}
	shown.Log = window(text, line)
	results, err := v.api.RunResults(v.Context(), id, v.get(pageParameter))
	if err != nil {
		return nil, err
	}
	shown.Values, shown.Next = results.Results, results.Next
	if r.Kind == bench.KindProfile {
		made, err := v.madeBy(r.Project, "", apiclient.CodeProfileQuery{Run: id})
		if err != nil {
			return nil, err
		}
		shown.Made = &made
	}
	if r.Kind == bench.KindCommand {
		if shown.Files, err = filesOf(v, id); err != nil {
			return nil, err
		}
	}
	if shown.Profile, err = p.profile(v, r, asked); err != nil {
		return nil, err
	}
	if r.Outcome != bench.RunRunning && shown.Profile.Over && !shown.Profile.Unread && !r.Status.Open() {
		out.Live, out.Revision, out.Ended = "", "", true
	}
	out.Title = "Run " + strconv.Itoa(r.Number) + " of job " + string(r.Job)
	out.Crumbs = []link{projectLink(r.Project), {"/jobs/" + segments(r.Job), "Job " + string(r.Job)}}
	out.Content = shown
	return out, nil
}

// keptFile is a file that a run has kept, with the address from which it is downloaded.
type keptFile struct {
	apiclient.RunFile
	Address string
}

func filesOf(v *visit, id bench.RunID) ([]keptFile, error) {
	files, err := v.api.RunFiles(v.Context(), id)
	out := make([]keptFile, len(files))
	for i, f := range files {
		out[i] = keptFile{f, "/api/v1/runs/" + segments(id) + "/files/content?" + url.Values{"path": {f.Path}}.Encode()}
	}
	return out, err
}

// maxLog bounds the part of a log that is read, in bytes. The API keeps no more.
const maxLog = 4 << 20

// readLog reads what the API has of a run's output.
func readLog(v *visit, id bench.RunID) ([]byte, error) {
	var text []byte
	for q := (apiclient.LogQuery{}); len(text) < maxLog; {
		piece, err := v.api.RunLog(v.Context(), id, q)
		if err != nil {
			return nil, err
		}
		if len(piece.Data) == 0 {
			break
		}
		text, q.From = append(text, piece.Data...), piece.Next
	}
	return text, nil
}

// windowLines is the number of lines of a log that a page shows.
const windowLines = 500

// logView is a part of a log.
type logView struct {
	Lines []logLine
	// Total is the number of lines.
	Total int
	// Earlier and Later are lines of the parts before and after this one; 0: there is none.
	Earlier, Later int
	// Asked is the line that the address names; 0: none.
	Asked int
}

// logLine is a line of a log, with its address.
type logLine struct {
	Number int
	Text   string
}

// window returns the part of a log that has a line, or its end if the line is 0. Parts do
// not overlap, so that a line has one address.
func window(text []byte, line int) logView {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	shown := logView{Total: len(lines)}
	if len(lines) == 0 {
		return shown
	}
	if line > len(lines) {
		line = 0
	}
	shown.Asked = line
	line = cmp.Or(line, len(lines))
	first := (line - 1) / windowLines * windowLines
	last := min(first+windowLines, len(lines))
	for i := first; i < last; i++ {
		shown.Lines = append(shown.Lines, logLine{Number: i + 1, Text: cli.Escape(strings.TrimRight(string(lines[i]), "\r\n"))})
	}
	if first > 0 {
		shown.Earlier = first
	}
	if last < len(lines) {
		shown.Later = last + 1
	}
	return shown
}

// factsOf returns the facts of a machine by name.
func factsOf(text json.RawMessage) []fact {
	var facts map[string]any
	if json.Unmarshal(text, &facts) != nil {
		return nil
	}
	var out []fact
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		words, isText := facts[name].(string)
		if !isText {
			encoded, err := json.Marshal(facts[name])
			if err != nil {
				continue // it was JSON
			}
			words = string(encoded)
		}
		out = append(out, fact{strings.ReplaceAll(name, "_", " "), words})
	}
	return out
}

// numbers writes the values of a metric, in its unit.
func numbers(m apiclient.MetricValues) string {
	texts := make([]string, len(m.Values))
	for i, v := range m.Values {
		texts[i] = strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strings.Join(texts, " ")
}

// join writes the words of a command line.
func join(words []string) string { return strings.Join(words, " ") }

// line returns the address of a line of the log that a page shows.
func line(f frame, number int) string {
	n := strconv.Itoa(number)
	return address(f, lineParameter, n) + "#L" + n
}
