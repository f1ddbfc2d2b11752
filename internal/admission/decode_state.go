package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/bench"
)

// maxReported bounds the number of faults reported for a file.
const maxReported = 20

// DecodeState reads the state that an order depends on:
//
//	{"requests": [{"id", "tag", "type", "parent", "pr", "created_at", "commit_date", "status"}...],
//	 "completed": ["tag"...]}
//
// Times are RFC 3339. Type, created_at, status and one of id and tag are required; a request without an ID has its tag
// as ID. An absent field and null are the same. Field names and values are case-sensitive. The error names the first 20
// faults, each with its entry and field.
func DecodeState(text []byte) (requests []Request, completed map[string]bool, err error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("reading the state file: it is not UTF-8 text")
	}
	if err := checkSyntax(text); err != nil {
		return nil, nil, fmt.Errorf("reading the state file: %w", err)
	}
	var f faults
	requests, completed = decodeState(&f, text)
	if err := f.err(); err != nil {
		return nil, nil, fmt.Errorf("reading the state file: %w", err)
	}
	return requests, completed, nil
}

// checkSyntax reports the line at which text stops being JSON.
func checkSyntax(text []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err //nolint:wrapcheck // the caller says what was read
	}
	before := text[:min(int(syntax.Offset), len(text))]
	return fmt.Errorf("line %d: it is not JSON: %w", bytes.Count(before, []byte("\n"))+1, err)
}

func decodeState(f *faults, text json.RawMessage) ([]Request, map[string]bool) {
	requests, completed := []Request{}, map[string]bool{}
	top := f.object("", text, "requests", "completed")
	if top == nil {
		return nil, nil
	}
	if isNull(top["requests"]) {
		f.add("", "requests", "is missing")
	}
	entries := f.array("requests", top["requests"])
	explicit := map[bench.RequestID]int{} // by ID, the first entry with it
	for i, raw := range entries {
		r := decodeRequest(f, i, raw)
		requests = append(requests, r)
		if r.ID == "" {
			continue
		}
		first, seen := explicit[r.ID]
		if seen {
			f.add(entryName(i), "id", fmt.Sprintf("%q is also that of %s; an ID names one request", r.ID, entryName(first)))
		} else {
			explicit[r.ID] = i
		}
	}
	for i := range requests {
		if requests[i].ID == "" {
			requests[i].ID = bench.RequestID(requests[i].Tag)
		}
	}
	for i, raw := range f.array("completed", top["completed"]) {
		name := fmt.Sprintf("completed[%d]", i)
		var tag string
		if isNull(raw) || json.Unmarshal(raw, &tag) != nil || tag == "" {
			f.add(name, "", fmt.Sprintf("%s is no tag; use a text that is not empty", shown(raw)))
			continue
		}
		completed[tag] = true
	}
	return requests, completed
}

func entryName(i int) string { return fmt.Sprintf("requests[%d]", i) }

func decodeRequest(f *faults, i int, raw json.RawMessage) Request {
	var r Request
	name := entryName(i)
	fields := f.object(name, raw, "id", "tag", "type", "parent", "pr", "created_at", "commit_date", "status")
	if fields == nil {
		return r
	}
	e := entry{faults: f, name: name, fields: fields}
	r.ID, r.Tag, r.ParentTag = bench.RequestID(e.text("id")), e.text("tag"), e.text("parent")
	if r.ID == "" && r.Tag == "" && isTextOrAbsent(fields["id"]) && isTextOrAbsent(fields["tag"]) {
		f.add(name, "id", "is missing, and so is the tag; give one of both")
	}
	r.Type = bench.RequestType(e.oneOf("type", "release, master or try", string(bench.Release), string(bench.Master), string(bench.Try)))
	r.Status = bench.RequestStatus(e.oneOf("status", "waiting_for_artifacts, artifacts_ready, in_progress or completed",
		string(bench.WaitingForArtifacts), string(bench.ArtifactsReady), string(bench.InProgress), string(bench.Completed)))
	r.PR = e.number("pr")
	if e.required("created_at") {
		r.CreatedAt = e.time("created_at")
	}
	r.CommitDate = e.time("commit_date")
	return r
}

// entry is a request being read.
type entry struct {
	faults *faults
	name   string
	fields map[string]json.RawMessage
}

func (e entry) required(field string) bool {
	if isNull(e.fields[field]) {
		e.faults.add(e.name, field, "is missing")
		return false
	}
	return true
}

func (e entry) text(field string) string {
	raw := e.fields[field]
	var text string
	if !isNull(raw) && json.Unmarshal(raw, &text) != nil {
		e.faults.add(e.name, field, shown(raw)+" is no text")
	}
	return text
}

func (e entry) oneOf(field, valid string, values ...string) string {
	if !e.required(field) {
		return ""
	}
	raw := e.fields[field]
	var text string
	if json.Unmarshal(raw, &text) == nil {
		for _, v := range values {
			if text == v {
				return v
			}
		}
	}
	if field == "type" && text == "adhoc" {
		e.faults.add(e.name, field, `"adhoc" requests are in no order, they go straight to the machines; leave it out`)
		return ""
	}
	e.faults.add(e.name, field, fmt.Sprintf("%s is unknown; use %s", shown(raw), valid))
	return ""
}

func (e entry) number(field string) int {
	raw := e.fields[field]
	if isNull(raw) {
		return 0
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 {
		e.faults.add(e.name, field, shown(raw)+" is no pull request's number; use a whole number, 0 or none for no pull request")
		return 0
	}
	return n
}

func (e entry) time(field string) time.Time {
	raw := e.fields[field]
	if isNull(raw) {
		return time.Time{}
	}
	var text string
	var at time.Time
	if json.Unmarshal(raw, &text) != nil || at.UnmarshalText([]byte(text)) != nil || at.IsZero() || at.UTC().Year() < 1 || at.UTC().Year() > 9999 {
		e.faults.add(e.name, field, shown(raw)+` is no time; use RFC 3339, such as "2026-01-31T12:00:00Z"`)
		return time.Time{}
	}
	return at
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func isTextOrAbsent(raw json.RawMessage) bool { return isNull(raw) || raw[0] == '"' }

// shown returns a value as an error quotes it, shortened.
func shown(raw json.RawMessage) string {
	const most = 60
	text := []rune(string(raw))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
