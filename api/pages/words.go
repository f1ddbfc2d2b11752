package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/report"
)

// words returns the functions of templates. Functions of time take the frame's Now first.
func words(a assets) template.FuncMap {
	return template.FuncMap{
		"asset":   a.path,
		"ago":     ago,
		"until":   until,
		"elapsed": elapsed,
		"failureKind": func(k bench.FailureKind) string {
			return cmp.Or(failureKinds[k], strings.ReplaceAll(string(k), "_", " "))
		},
		"past":     func(now time.Time, t *time.Time) bool { return t.Before(now) },
		"state":    state,
		"plural":   cli.Plural,
		"bounded":  bounded,
		"seconds":  seconds,
		"period":   period,
		"took":     took,
		"percent":  func(share *float64) string { return fmt.Sprintf("%.0f %%", *share*100) },
		"segment":  segments,
		"clip":     clip,
		"long":     func(text string) bool { return utf8.RuneCountInString(text) > whole },
		"subject":  cli.Subject,
		"join":     strings.Join,
		"words":    func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
		"about":    about,
		"address":  address,
		"paged":    paged,
		"args":     func(list ...any) []any { return list },
		"trimmed":  strings.TrimSpace,
		"contains": strings.Contains,

		"share":       share,
		"spread":      spread,
		"noisier":     noisier,
		"times":       func(ratio float64) string { return unbroken(fmt.Sprintf("%.2f ×", ratio)) },
		"beside":      beside,
		"lasted":      lasted,
		"doing":       doing,
		"value":       report.Value,
		"numbers":     numbers,
		"sampled":     func(seconds float64) string { return cli.InUnit(seconds, profiler.Seconds) },
		"printable":   cli.Escape,
		"line":        line,
		"constraints": cli.Constraints,
		"accesskey":   func(href string) string { return accessKeys[href] },
		"job":         jobTitle,
		"comparison":  comparison,
		"samples":     sampledBy,
		"history":     historyAddress,
		"verdict":     func(r comparedRow) template.HTML { return signed(r.style(), cmp.Or(r.Text.Verdict, "explains")) },
		"capital":     capital,
		"stepName":    func(s apiclient.StepName) string { return stepNames[s] },
		"duration":    cli.Duration,
		// commandLine writes the words of a command, command those of our command line.
		"commandLine": func(argv []string) string { return quoted(argv...) },
		"command":     func(words ...any) string { return quoted(texts(words)...) },
		"timePointer": func(t time.Time) *time.Time { return &t },
		"operand":     operand,
		"graphState":  graphState,
		"graphStates": cli.GraphStates,
		"graphReason": cli.GraphReason,
		"graphClass":  func(s graph.Status) string { return graphStyles[s].class },
		"graphShape":  func(s graph.Status) string { return graphShapes[s] },
		"unbroken":    unbroken,
		"blocked":     cli.BlockedWords,
	}
}

// subjectOf says what a request measures, without the project's name before it.
func subjectOf(r apiclient.Request) string { return cli.Subject(r) }

func plural(n int, noun string) string { return cli.Plural(n, noun) }

func joined(words []string) string { return strings.Join(words, ", ") }

func texts(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// failureKinds has words for the kinds of failures.
var failureKinds = map[bench.FailureKind]string{
	bench.FailInfrastructure: "the infrastructure failed", bench.FailTooSmall: "its size class is too small", bench.FailJob: "it failed",
	bench.FailPermanent: "it cannot succeed", bench.FailCancelled: "it was cancelled",
}

// stepNames are the names of a request's steps.
var stepNames = map[apiclient.StepName]string{
	apiclient.StepArtifacts: "Artifacts", apiclient.StepParent: "Parent", apiclient.StepTurn: "Turn", apiclient.StepBuild: "Build",
	apiclient.StepBackfill: "Backfill", apiclient.StepOwn: "Own jobs", apiclient.StepVerify: "Verify", apiclient.StepCompare: "Compare",
}

// exact writes a time for a title, to the second.
const exact = "2006-01-02 15:04:05 UTC"

// at writes a time as words, with the exact time as its title.
func at(t time.Time, words string) template.HTML {
	t = t.UTC()
	//nolint:gosec // both are written here; words are those of a duration
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" title="` + t.Format(exact) + `">` + template.HTMLEscapeString(words) + `</time>`)
}

// ago writes how long ago a time was. It takes a time or a pointer to one; nothing is
// written for nil.
func ago(now time.Time, t any) template.HTML {
	when, known := moment(t)
	switch {
	case !known:
		return ""
	case when.After(now.Add(time.Second)):
		return at(when, "in "+cli.Duration(when.Sub(now)))
	}
	return at(when, cli.Ago(now, when))
}

// elapsed writes the time since a time or a pointer to one; nothing is written for nil.
func elapsed(now time.Time, t any) template.HTML {
	when, known := moment(t)
	if !known {
		return ""
	}
	return at(when, cli.Duration(max(0, now.Sub(when))))
}

// until writes a foreseen time: the time of day, and how far away it is.
func until(now time.Time, t any) template.HTML {
	when, known := moment(t)
	if !known {
		return ""
	}
	distance := "overdue"
	if when.After(now) {
		distance = "in " + cli.Duration(max(when.Sub(now).Round(time.Second), time.Second))
	}
	layout := "15:04 UTC"
	if when.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		layout = "2006-01-02 15:04 UTC"
	}
	return at(when, when.UTC().Format(layout)+" ("+distance+")")
}

func moment(t any) (time.Time, bool) {
	switch t := t.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t != nil {
			return *t, !t.IsZero()
		}
	}
	return time.Time{}, false
}

// took writes the time between two times; until now if the second is nil, nothing if the
// first is.
func took(now time.Time, from, to *time.Time) string {
	switch {
	case from == nil:
		return ""
	case to == nil:
		return cli.Duration(now.Sub(*from))
	}
	return cli.Duration(to.Sub(*from))
}

// style shows a state beside its word, by a sign and a colour: never by the colour alone.
type style struct{ class, sign string }

// Classes of styles, each a colour of the style sheet.
var (
	styleGood    = style{"good", "✓"}
	styleBad     = style{"bad", "✗"}
	styleActive  = style{"active", "▶"}
	styleWaiting = style{"waiting", "◌"}
	styleWarning = style{"warning", "!"}
	styleQuiet   = style{"quiet", "–"}
)

// styles has the style of each state of a request, a job, a run, a collector, a step and a
// verdict. A state that is not listed is quiet.
var styles = map[string]style{
	"success": styleGood, "passed": styleGood, "done": styleGood, "no difference": styleGood, "no suspicion": styleGood, "ready": styleGood,
	"failure": styleBad, "timeout": styleBad, "oom": styleBad, "too_small": styleBad, "permanent": styleBad, "stuck": styleBad, "failed": styleBad,
	"in_progress": styleActive, "running": styleActive, "benchmarking": styleActive,
	"succeeded": styleGood, "timed_out": styleBad, "out_of_memory": styleBad,
	"queued": styleWaiting, "handed_out": styleWaiting, "waiting_for_artifacts": styleWaiting, "artifacts_ready": styleWaiting, "waiting": styleWaiting, "undecided": styleWaiting,
	"lost": styleWarning, "offline": styleWarning, "draining": styleWarning, "set aside": styleWarning, "paused": styleWarning, "changed": styleWarning, "disturbed": styleWarning, "expired": styleWarning,
	"cancelled": styleQuiet, "inactive": styleQuiet, "completed": styleQuiet, "skipped": styleQuiet, "planned": styleQuiet,
}

// state writes a state with its sign and its colour.
func state(s any) template.HTML {
	word := fmt.Sprint(s)
	if word == "" {
		word = "running" // a run without an outcome
	}
	shown, known := styles[word]
	if !known {
		shown = styleQuiet
	}
	return signed(shown, strings.ReplaceAll(word, "_", " "))
}

func signed(s style, word string) template.HTML {
	//nolint:gosec // what comes from outside is escaped
	return template.HTML(`<span class="state ` + s.class + `"><span class="sign" aria-hidden="true">` + s.sign + `</span> ` +
		template.HTMLEscapeString(word) + `</span>`)
}

// capital capitalizes a text.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || strings.HasPrefix(text[size:], "=") { // a symbol, such as p
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// maxCounted bounds the numbers that are shown exactly.
const maxCounted = 10_000

// bounded writes a number, which was worth counting up to maxCounted.
func bounded(n int, noun string) string {
	if n > maxCounted {
		return "more than 10,000 " + noun + "s"
	}
	return cli.Plural(n, noun)
}

func seconds(s float64) string { return cli.Duration(time.Duration(s * float64(time.Second))) }

// period writes a configured length of time, given in seconds: 1h, not 1h00m.
func period(s float64) string {
	text := seconds(s)
	for _, none := range []string{"m00s", "h00m"} {
		if cut, whole := strings.CutSuffix(text, none); whole {
			return cut + none[:1]
		}
	}
	return text
}

// joiner keeps numbers on the line of their signs.
var joiner = strings.NewReplacer(" %", "\u00a0%", "≥ ", "≥\u00a0", " ×", "\u00a0×")

// unbroken writes a text whose numbers stay with their signs.
func unbroken(text any) string { return joiner.Replace(fmt.Sprint(text)) }

// operand links to the subject of an operation; nil: it has no page.
func operand(o apiclient.Operation) *link {
	kind, _, _ := strings.Cut(o.Action, " ")
	switch {
	case kind == "job" || (kind == "retrigger" || kind == "rerun") && isJob(o.Subject):
		return &link{"/jobs/" + segments(o.Subject), o.Subject}
	case (kind == "request" || kind == "retrigger" || kind == "rerun") && len(o.Requests) > 0:
		return &link{"/requests/" + segments(o.Subject), o.Subject}
	case kind == "suite": // the beginning of a hash identifies it
		return &link{"/audit?subject=" + url.QueryEscape(o.Subject), fmt.Sprintf("%.12s", o.Subject)}
	}
	return nil
}

func isJob(subject string) bool {
	_, err := bench.ParseJobKey(subject)
	return err == nil
}

// segments writes a name as one part of an address. A colon needs no escape there, and
// addresses such as /requests/go:1.26.0 are for people.
func segments(name any) string {
	return strings.ReplaceAll(url.PathEscape(fmt.Sprint(name)), "%3A", ":")
}

// clipped is the length at which a text from others is cut, in characters.
const clipped = 240

// whole is the length up to which a text is not cut: nobody opens it for a few more words.
const whole = clipped + 80

// clip shortens a text.
func clip(text string) string {
	if utf8.RuneCountInString(text) <= whole {
		return text
	}
	return string([]rune(text)[:clipped]) + "…"
}

// about writes a number of bytes.
func about(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(bytes)/(1<<10))
}

// address returns the address of a frame's page with a parameter set to a value; an empty
// value removes it. Any parameter but the page returns to the beginning of a list.
func address(f frame, name, value string) string {
	query := f.url.Query()
	if name != pageParameter {
		query.Del(pageParameter)
	}
	if value == "" {
		query.Del(name)
	} else {
		query.Set(name, value)
	}
	if len(query) == 0 {
		return f.url.EscapedPath()
	}
	return f.url.EscapedPath() + "?" + query.Encode()
}

// Path is the address of the page without parameters.
func (f frame) Path() string { return f.url.EscapedPath() }

// Kept lists the parameters of the page without some, as fields of a form: the texts are
// names, the addresses values.
func (f frame) Kept(without ...string) []link {
	var fields []link
	query := f.url.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			if !slices.Contains(without, name) && value != "" {
				fields = append(fields, link{value, name})
			}
		}
	}
	return fields
}

// Leaving returns the frame of the page without some parameters, which its addresses lack.
func (f frame) Leaving(names ...string) frame {
	at, query := *f.url, f.url.Query()
	for _, name := range names {
		query.Del(name)
	}
	at.RawQuery = query.Encode()
	f.url = &at
	return f
}

// Without is the address of the page without some parameters.
func (f frame) Without(names ...string) string {
	query := f.url.Query()
	for _, name := range names {
		query.Del(name)
	}
	if len(query) == 0 {
		return f.Path()
	}
	return f.Path() + "?" + query.Encode()
}

// paged reports whether a frame's page shows a later part of its list.
func paged(f frame) bool { return f.url.Query().Get(pageParameter) != "" }
