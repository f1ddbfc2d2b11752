package admission_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/state.json")
	require.NoError(t, err)
	requests, completed, err := admission.DecodeState(text)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"c1": true, "1.9.0": true}, completed)
	require.Equal(t, admission.Request{
		ID: "r1", Tag: "1.10.0", Type: bench.Release, Status: bench.ArtifactsReady,
		CreatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), CommitDate: time.Date(2026, 1, 1, 12, 0, 0, 500_000_000, time.UTC),
	}, requests[0])
	require.EqualValues(t, "c3", requests[1].ID, "a request without an ID goes by its tag")

	completed["c9"] = false // not finished after all
	written, err := admission.EncodeState(requests, completed)
	require.NoError(t, err)
	require.Equal(t, string(text), string(written))
}

func TestTheOrderIsWrittenInWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/state.json")
	require.NoError(t, err)
	requests, completed, err := admission.DecodeState(text)
	require.NoError(t, err)
	written, err := json.MarshalIndent(admission.NewListing(admission.Order(requests, completed, admission.Spec)), "", "  ")
	require.NoError(t, err)
	golden(t, "testdata/order.golden", append(written, '\n'))

	written, err = json.Marshal(admission.NewListing(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"order":[]}`, string(written))
}

func TestOptionalStateFields(t *testing.T) {
	t.Parallel()
	least := `{"tag":"a","type":"try","created_at":"2026-01-01T00:00:00+02:00","status":"completed"}`
	for name, text := range map[string]string{
		"completed":     `{"requests":[` + least + `]}`,
		"null is none":  `{"completed":null,"requests":[{"id":null,"tag":"a","type":"try","parent":null,"pr":null,"created_at":"2026-01-01T00:00:00+02:00","commit_date":null,"status":"completed"}]}`,
		"empty is none": `{"completed":[],"requests":[{"id":"","tag":"a","type":"try","parent":"","pr":0,"created_at":"2026-01-01T00:00:00+02:00","status":"completed"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests, completed, err := admission.DecodeState([]byte(text))
			require.NoError(t, err)
			require.Empty(t, completed)
			require.Len(t, requests, 1)
			require.True(t, requests[0].CreatedAt.Equal(time.Date(2025, 12, 31, 22, 0, 0, 0, time.UTC)))
			requests[0].CreatedAt = time.Time{}
			require.Equal(t, admission.Request{ID: "a", Tag: "a", Type: bench.Try, Status: bench.Completed}, requests[0])
		})
	}
	requests, _, err := admission.DecodeState([]byte(`{"requests":[]}`))
	require.NoError(t, err)
	require.Empty(t, requests)
}

func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	// good with one field replaced, added or (value empty) removed.
	with := func(field, value string) string {
		fields := map[string]string{
			"id": `"r"`, "tag": `"a"`, "type": `"master"`, "created_at": `"2026-01-01T00:00:00Z"`, "status": `"artifacts_ready"`,
		}
		fields[field] = value
		var parts []string
		for _, name := range []string{"id", "tag", "type", "created_at", "status", "parent", "pr", "commit_date", "Tag", "colour"} {
			if v := fields[name]; v != "" {
				parts = append(parts, `"`+name+`":`+v)
			}
		}
		return `{"requests":[{` + strings.Join(parts, ",") + `}]}`
	}
	_, _, err := admission.DecodeState([]byte(with("pr", "7")))
	require.NoError(t, err, "what the faults are made from is itself wrong")
	for _, c := range []struct{ name, text, says string }{
		{"unknown field", with("colour", "1"), "requests[0].colour: is an unknown field; use id, tag, type, parent, pr, created_at, commit_date, status"},
		{"another case", with("Tag", `"a"`), "requests[0].Tag: is an unknown field"},
		{"unknown field at the top", `{"requests":[],"policy":"spec"}`, "policy: is an unknown field; use requests, completed"},
		{"no requests", `{"completed":[]}`, "requests: is missing"},
		{"requests no list", `{"requests":{}}`, "requests: {} is no list"},
		{"an entry that is none", `{"requests":[7]}`, "requests[0]: 7 is no object"},
		{"a field twice", `{"requests":[],"requests":[]}`, "requests: is given twice"},
		{"neither ID nor tag", strings.Replace(with("id", ""), `"tag":"a",`, "", 1), "requests[0].id: is missing, and so is the tag"},
		{"an ID twice", strings.Replace(with("id", `"r"`), `[`, `[`+strings.TrimSuffix(strings.TrimPrefix(with("id", `"r"`), `{"requests":[`), `]}`)+",", 1),
			`requests[1].id: "r" is also that of requests[0]`},
		{"ID a number", with("id", "7"), "requests[0].id: 7 is no text"},
		{"no type", with("type", ""), "requests[0].type: is missing"},
		{"unknown type", with("type", `"nightly"`), `requests[0].type: "nightly" is unknown; use release, master or try`},
		{"type in capitals", with("type", `"Master"`), `requests[0].type: "Master" is unknown`},
		{"ad hoc", with("type", `"adhoc"`), `requests[0].type: "adhoc" requests are in no order`},
		{"no status", with("status", "null"), "requests[0].status: is missing"},
		{"unknown status", with("status", `"done"`), `requests[0].status: "done" is unknown; use waiting_for_artifacts`},
		{"no creation", with("created_at", ""), "requests[0].created_at: is missing"},
		{"a day for a time", with("created_at", `"2026-01-01"`), `requests[0].created_at: "2026-01-01" is no time; use RFC 3339`},
		{"a number for a time", with("created_at", "1767225600"), "requests[0].created_at: 1767225600 is no time"},
		{"no such day", with("commit_date", `"2026-02-30T00:00:00Z"`), "requests[0].commit_date: "},
		{"negative number", with("pr", "-1"), "requests[0].pr: -1 is no pull request's number"},
		{"fraction", with("pr", "1.5"), "requests[0].pr: 1.5 is no pull request's number"},
		{"number as text", with("pr", `"7"`), `requests[0].pr: "7" is no pull request's number`},
		{"huge number", with("pr", "99999999999999999999"), "requests[0].pr: "},
		{"parent a list", with("parent", `["a"]`), `requests[0].parent: ["a"] is no text`},
		{"completed no list", `{"requests":[],"completed":"a"}`, `completed: "a" is no list`},
		{"completed with a number", `{"requests":[],"completed":["a",7]}`, "completed[1]: 7 is no tag"},
		{"completed with nothing", `{"requests":[],"completed":[""]}`, `completed[0]: "" is no tag`},
		{"not JSON", "{\n\"requests\": [,]}", "line 2: it is not JSON"},
		{"cut off", `{"requests":[`, "line 1: it is not JSON: unexpected end"},
		{"something behind", `{"requests":[]} {}`, "it is not JSON"},
		{"empty", "", "it is not JSON"},
		{"a list", "[]", "the file: [] is no object"},
		{"not UTF-8", "{\"requests\":[],\"completed\":[\"\xff\"]}", "it is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := admission.DecodeState([]byte(c.text))
			require.ErrorContains(t, err, c.says, c.text)
		})
	}
}

func TestReportedFaultsAreBounded(t *testing.T) {
	t.Parallel()
	_, _, err := admission.DecodeState([]byte(`{"requests":[` + strings.Repeat(`{"tag":"a"},`, 9) + `{"tag":"a"}]}`))
	require.ErrorContains(t, err, "requests[0].type: is missing")
	require.ErrorContains(t, err, "requests[5].status: is missing")
	require.ErrorContains(t, err, "and 10 more")
}

func TestEncodeStateRefusesUnreadableState(t *testing.T) {
	t.Parallel()
	_, err := admission.EncodeState([]admission.Request{{ID: "r", Type: "adhoc", Status: bench.Completed, CreatedAt: time.Unix(0, 0)}}, nil)
	require.ErrorContains(t, err, "writing the state file: requests[0].type")
	_, err = admission.EncodeState([]admission.Request{{ID: "r", Type: bench.Try, Status: bench.Completed}}, nil)
	require.ErrorContains(t, err, "requests[0].created_at")
}

// FuzzDecode: nothing panics, and what was read is written and read as the same.
func FuzzDecode(f *testing.F) {
	state, err := os.ReadFile("testdata/state.json")
	require.NoError(f, err)
	f.Add(state)
	f.Add([]byte(`{"requests":[{"tag":"a","type":"try","parent":"a","created_at":"2026-01-01T00:00:00+02:00","status":"artifacts_ready"}]}`))
	f.Add([]byte(`{"requests":[{"id":"b","tag":"b","type":"try","created_at":"9999-12-31T23:59:59-02:00","status":"artifacts_ready"}]}`))
	f.Add([]byte(`{"requests":[{"pr":1e3,"x":{}}],"completed":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		requests, completed, err := admission.DecodeState(text)
		if err != nil {
			require.Nil(t, requests)
			return
		}
		written, err := admission.EncodeState(requests, completed)
		require.NoError(t, err)
		again, completedAgain, err := admission.DecodeState(written)
		require.NoError(t, err)
		require.Equal(t, completed, completedAgain)
		require.Equal(t, inUTC(requests), again)
		require.Equal(t,
			admission.NewListing(admission.Order(requests, completed, admission.Spec)),
			admission.NewListing(admission.Order(again, completedAgain, admission.Spec)))
	})
}

func inUTC(requests []admission.Request) []admission.Request {
	out := append([]admission.Request{}, requests...)
	for i := range out {
		out[i].CreatedAt, out[i].CommitDate = out[i].CreatedAt.UTC(), out[i].CommitDate.UTC()
	}
	return out
}
