package api_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// callers of every operation. Those of an account have no collector, and the other way
// round; "elsewhere" and "admin elsewhere" may change only the project other, and all that
// the examples change belongs to the project go.
var callers = []string{"none", "unknown", "expired", "revoked", "reader", "elsewhere", "writer", "admin elsewhere", "admin", "shared", "other", "own"}

// rolesWorld is an API in which everything exists that the examples name.
type rolesWorld struct {
	*bundle
	t     testing.TB
	suite string
	// done is a job that has ended.
	done job
	n    int
}

// example is one valid call of an operation by whoever may make it.
type example struct{ path, body, contentType string }

func asJSON(path string, body any) example {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return example{path, string(text), "application/json"}
}

func newRolesWorld(t testing.TB, change ...func(*api.Config)) *rolesWorld {
	t.Helper()
	w := &rolesWorld{bundle: setup(t, append(change, invitedOnly)...), t: t}
	w.nobody = w.reader // for helpers that read: reading may be closed
	w.suite = packed(t, smallSuite).Hash
	w.enrolment(t)
	w.project(t)
	_, err := w.admin.ApplyProject(t.Context(), apiclient.Project{Name: "other", SuiteHash: w.suite}, false)
	require.NoError(t, err)
	_, err = w.client(t, "other").RegisterCollector(t.Context(), unnamed("other"))
	require.NoError(t, err)
	w.tokens["shared"], w.collector = w.tokens[sharedToken], w.client(t, "own")
	w.done = w.measure(t, "done", 1, w.registered())

	for name, is := range map[string]store.Token{
		"elsewhere": {Role: api.RoleWriter, Project: "other"}, "admin elsewhere": {Role: api.RoleAdmin, Project: "other"},
		"expired": {Role: api.RoleAdmin}, "revoked": {Role: api.RoleAdmin},
	} {
		id, err := bench.NewTokenID(rand.Reader)
		require.NoError(t, err)
		secret, err := api.NewToken(rand.Reader)
		require.NoError(t, err)
		hash := sha256.Sum256([]byte(secret))
		is.ID, is.Owner = id, strings.ReplaceAll(name, " ", "-")
		_, err = w.store.CreateToken(t.Context(), is, hash[:], time.Hour, store.Act{Who: "ada"})
		require.NoError(t, err)
		w.tokens[name] = secret
		if name == "revoked" {
			_, _, err = w.store.RevokeToken(t.Context(), id, store.Act{Who: "ada"})
			require.NoError(t, err)
		}
	}
	w.past(t, `update access_token set expires_at = now() - interval '1 second' where owner = 'expired'`)
	w.tokens["unknown"] = "blm_unknownunknownunknownunknown"
	return w
}

// enrolment enrols the collectors own and other.
func (w *rolesWorld) enrolment(t testing.TB) {
	t.Helper()
	for _, name := range []string{"own", "other"} {
		w.enrol(t, name)
	}
}

// registered registers the collector own: an example may have done so before.
func (w *rolesWorld) registered() apiclient.Registered {
	r, err := w.client(w.t, "own").RegisterCollector(w.t.Context(), unnamed("own"))
	require.NoError(w.t, err)
	return r
}

// tag is another one with each call.
func (w *rolesWorld) tag() string {
	w.n++
	return "v" + strconv.Itoa(w.n)
}

// request submits a release.
func (w *rolesWorld) request() string {
	r, err := w.writer.CreateRequest(w.t.Context(), apiclient.NewRequest{Project: "go", Tag: w.tag()})
	require.NoError(w.t, err)
	return string(r.ID)
}

// ended is a request that was cancelled.
func (w *rolesWorld) ended() string {
	id := w.request()
	_, err := w.writer.CancelRequest(w.t.Context(), id, apiclient.Act{})
	require.NoError(w.t, err)
	return id
}

// token is one that nobody uses.
func (w *rolesWorld) token() string {
	created, err := w.admin.CreateToken(w.t.Context(), apiclient.NewToken{Owner: "bob", Role: api.RoleReader})
	require.NoError(w.t, err)
	return string(created.ID)
}

// run is one that the collector own has begun.
func (w *rolesWorld) run() (bench.RunID, job) {
	j := w.submit(w.t, w.tag())
	return w.start(w.t, j, w.registered(), 1).Run.ID, j
}

// doneRun is the run of the job that has ended.
func (w *rolesWorld) doneRun() string {
	return string(bench.NewRunID(w.done.key, "workflow", "activity", 1))
}

func get(path string) func(*rolesWorld) example {
	return func(*rolesWorld) example { return example{path: path} }
}

const act = `{"reason": "a test"}`

func acted(path string) func(*rolesWorld) example {
	return func(*rolesWorld) example { return example{path, act, "application/json"} }
}

// onOpen and onEnded act on a request of their own.
func onOpen(does string) func(*rolesWorld) example {
	return func(w *rolesWorld) example {
		return example{"/requests/" + w.request() + does, act, "application/json"}
	}
}

func onEnded(does string) func(*rolesWorld) example {
	return func(w *rolesWorld) example { return example{"/requests/" + w.ended() + does, act, "application/json"} }
}

func onRun(path string, body any) func(*rolesWorld) example {
	return func(w *rolesWorld) example {
		run, _ := w.run()
		return asJSON(fmt.Sprintf(path, run), body)
	}
}

// examples holds a call of each operation by its ID. Whatever it changes is made for it.
var examples = map[string]func(*rolesWorld) example{
	"info":                        get("/info"),
	"get-revision":                get("/revision?subject=service"),
	"get-overview":                get("/overview"),
	"list-projects":               get("/projects"),
	"get-project":                 get("/projects/go"),
	"list-admissions":             get("/projects/go/admissions"),
	"list-commits":                get("/projects/go/commits"),
	"list-graphs":                 get("/projects/go/graphs"),
	"list-definitions":            get("/projects/go/definitions"),
	"list-templates":              get("/projects/go/templates"), // it has none
	"render-template":             get("/projects/go/templates/nightly"),
	"get-graph":                   get("/graphs/rabcdefghjk-1"), // one that there is not
	"get-queue":                   get("/projects/go/queue"),
	"check-results":               get("/projects/go/results/check"),
	"list-queues":                 get("/queues"),
	"list-requests":               get("/requests"),
	"get-shares":                  get("/shares"),
	"get-wait-stats":              get("/stats/wait"),
	"get-retention":               get("/retention"),
	"list-shapes":                 get("/sizeclasses"),
	"get-shape":                   get("/sizeclasses/none"),
	"list-collectors":             get("/collectors"),
	"get-collector":               get("/collectors/own"),
	"get-collector-use":           get("/collectors/own/use"),
	"list-collector-runs":         get("/collectors/own/runs"),
	"get-collector-noise":         get("/collectors/own/noise"),
	"get-run":                     func(w *rolesWorld) example { return example{path: "/runs/" + w.doneRun()} },
	"list-run-results":            func(w *rolesWorld) example { return example{path: "/runs/" + w.doneRun() + "/results"} },
	"get-profile":                 func(w *rolesWorld) example { return example{path: "/runs/" + w.doneRun() + "/profile/series"} },
	"get-profile-metrics":         func(w *rolesWorld) example { return example{path: "/runs/" + w.doneRun() + "/profile/metrics"} },
	"list-code-profiles":          get("/projects/go/profiles"),
	"get-code-profile":            get("/profiles/paaaaaaaaaa"), // one that there is not
	"get-code-profile-file":       get("/profiles/paaaaaaaaaa/file"),
	"list-code-profile-functions": get("/profiles/paaaaaaaaaa/functions"),
	"diff-code-profiles":          get("/profiles/diff?a=paaaaaaaaaa&b=paaaaaaaaaa"),
	"get-code-profile-flames":     get("/profiles/paaaaaaaaaa/flames"),
	"diff-code-profile-flames":    get("/profiles/diff/flames?a=paaaaaaaaaa&b=paaaaaaaaaa"),
	"list-run-files":              get("/runs/aaaaaaaaaaaaaaaa-00000000/files"), // one that there is not
	"get-run-file":                get("/runs/aaaaaaaaaaaaaaaa-00000000/files/content?path=report"),
	"list-audit":                  get("/audit"),
	"list-tokens":                 get("/tokens"),
	"compare":                     get("/compare?project=go&a=done&b=done"),
	"get-compared-values":         get("/compare/values?project=go&a=done&b=done&row=gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"),
	"get-compared-machine":        get("/compare/machine?project=go&a=done&b=done&row=gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"),
	"get-earlier-values":          get("/compare/earlier?project=go&b=done&row=gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"),
	"export-results":              get("/results/export?project=go"),
	"read-history":                get("/projects/go/history"),
	"get-build":                   get("/builds/" + buildKey),
	"get-build-chunk": func(w *rolesWorld) example { // that a run of the caller's needs, and that is not stored
		_, j := w.run()
		spec := bench.BuildSpec{Tag: j.request.Tag, Target: linux, Key: bench.BuildKey(buildKey)}
		require.NoError(w.t, w.store.SetBuildRevision(w.t.Context(), "go", "recipe", spec))
		return example{path: "/builds/" + buildKey + "/chunks/0"}
	},
	"get-suite":            func(w *rolesWorld) example { return example{path: "/suites/" + w.suite} },
	"get-request":          get("/requests/go:done"),
	"explain-request":      get("/requests/go:done/explain"),
	"get-job":              func(w *rolesWorld) example { return example{path: "/jobs/" + string(w.done.key)} },
	"explain-job":          func(w *rolesWorld) example { return example{path: "/jobs/" + string(w.done.key) + "/explain"} },
	"get-job-log":          func(w *rolesWorld) example { return example{path: "/jobs/" + string(w.done.key) + "/log"} },
	"get-run-log":          func(w *rolesWorld) example { return example{path: "/runs/" + w.doneRun() + "/log"} },
	"list-request-jobs":    get("/requests/go:done/jobs"),
	"list-wanted-versions": get("/wanted-versions"),

	"create-request": func(w *rolesWorld) example {
		return asJSON("/requests", apiclient.NewRequest{Project: "go", Tag: w.tag()})
	},
	"artifacts-ready": func(w *rolesWorld) example {
		r, err := w.writer.CreateRequest(w.t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Try, PR: w.n + 1})
		require.NoError(w.t, err)
		return asJSON("/requests/"+string(r.ID)+"/artifacts-ready", apiclient.ArtifactsReady{Tag: w.tag()})
	},
	"cancel-request": onOpen("/cancel"),
	"expire-request": onOpen("/expire"),
	"retry-request":  onEnded("/retry"),
	"remeasure-request": func(w *rolesWorld) example {
		j := w.measure(w.t, w.tag(), 1, w.registered())
		return example{"/requests/" + string(j.request.ID) + "/remeasure", act, "application/json"}
	},
	"unstick-request": func(w *rolesWorld) example {
		return example{"/requests/" + w.request() + "/unstick", "{}", "application/json"}
	},
	"push-definitions": func(*rolesWorld) example {
		return asJSON("/projects/go/definitions", apiclient.DefinitionsPush{Files: defined()})
	},
	"run-graph": func(w *rolesWorld) example {
		w.pushed(w.t, asked)
		return asJSON("/projects/go/graphs", apiclient.GraphCall{Template: "nightly", Parameters: []string{"tag=" + w.tag()}})
	},
	"clone-graph": func(w *rolesWorld) example {
		return example{"/graphs/" + string(w.graph(w.t, "tag="+w.tag())) + "/clone", "{}", "application/json"}
	},
	"sign-off": func(w *rolesWorld) example {
		id := w.graph(w.t, "tag="+w.tag())
		return example{"/graphs/" + string(id) + "/sign-off", `{"agree": true, "reason": "a test"}`, "application/json"}
	},
	"set-queue-request": func(w *rolesWorld) example {
		return asJSON("/requests/"+w.request()+"/set-queue", apiclient.QueueChange{Queue: "project:go"})
	},
	"retrigger": func(w *rolesWorld) example {
		run, j := w.run()
		require.NoError(w.t, w.collector.FinishRun(w.t.Context(), run, apiclient.RunFinish{Outcome: bench.RunFailure}))
		_, err := w.store.FinishJob(w.t.Context(), j.key, 0, "it failed")
		require.NoError(w.t, err)
		return example{"/graphs/" + string(j.request.ID) + "/retrigger", `{"select": "state=failure", "reason": "a test"}`, "application/json"}
	},
	"rerun": func(w *rolesWorld) example {
		run, j := w.run()
		require.NoError(w.t, w.collector.FinishRun(w.t.Context(), run, apiclient.RunFinish{Outcome: bench.RunFailure}))
		_, err := w.store.FinishJob(w.t.Context(), j.key, 0, "it failed")
		require.NoError(w.t, err)
		return example{"/graphs/" + string(j.request.ID) + "/rerun", `{"select": "state=failure", "reason": "a test"}`, "application/json"}
	},
	"retry-job": func(w *rolesWorld) example {
		run, j := w.run()
		require.NoError(w.t, w.collector.FinishRun(w.t.Context(), run, apiclient.RunFinish{Outcome: bench.RunFailure}))
		_, err := w.store.FinishJob(w.t.Context(), j.key, 0, "it failed")
		require.NoError(w.t, err)
		return example{"/jobs/" + string(j.key) + "/retry", act, "application/json"}
	},
	"sync-project": acted("/projects/go/sync"),
	"put-suite": func(w *rolesWorld) example {
		s := packed(w.t, smallSuite)
		return example{"/suites/" + s.Hash, string(s.Archive), "application/gzip"}
	},
	"apply-project": func(w *rolesWorld) example {
		return asJSON("/projects/go", apiclient.Project{Name: "go", SuiteHash: w.suite})
	},
	"pause-queue":  acted("/projects/go/queue/pause"),
	"resume-queue": acted("/projects/go/queue/resume"),
	"apply-queues": func(*rolesWorld) example {
		return example{"/queues", `{"queues": [{"name": "night", "class": "strict", "level": 5}]}`, "application/json"}
	},
	"rebuild-results": acted("/projects/go/results/rebuild"),
	"run-retention":   func(*rolesWorld) example { return example{path: "/retention/run"} },
	"set-weight": func(*rolesWorld) example {
		return example{"/queues/user:rita/weight", `{"weight": 2}`, "application/json"}
	},
	"invalidate-results": func(*rolesWorld) example {
		return example{"/results/invalidate", `{"project": "go", "tag": "done", "reason": "a test", "dry_run": true}`, "application/json"}
	},
	"purge-artifact": func(*rolesWorld) example {
		return example{"/artifacts/purge", `{"project": "go", "tag": "done", "reason": "a test", "dry_run": true}`, "application/json"}
	},
	"create-token": func(*rolesWorld) example {
		return asJSON("/tokens", apiclient.NewToken{Owner: "bob", Role: api.RoleReader})
	},
	"rotate-token": func(w *rolesWorld) example {
		return example{"/tokens/" + w.token() + "/rotate", "{}", "application/json"}
	},
	"revoke-token": func(w *rolesWorld) example {
		return example{"/tokens/" + w.token() + "/revoke", "{}", "application/json"}
	},
	"want-version": func(*rolesWorld) example {
		return asJSON("/wanted-versions", apiclient.WantVersion{Pool: "another", Version: "v9"})
	},
	"invite-collector":   func(w *rolesWorld) example { return asJSON("/collectors/invitations", invite("bench-"+w.tag())) },
	"drain-collector":    acted("/collectors/third/drain"),
	"activate-collector": acted("/collectors/third/activate"),
	"remove-collector": func(w *rolesWorld) example {
		name := "bench-" + w.tag()
		_, err := w.admin.InviteCollector(w.t.Context(), invite(name))
		require.NoError(w.t, err)
		return example{path: "/collectors/" + name}
	},

	"enroll-collector": func(w *rolesWorld) example {
		invited, err := w.admin.InviteCollector(w.t.Context(), invite("bench-"+w.tag()))
		require.NoError(w.t, err)
		return asJSON("/collectors/enroll", apiclient.Enrolment{Token: invited.Token, SecretHash: sha256Hex(invited.Token)})
	},
	"put-own-token": func(w *rolesWorld) example {
		return asJSON("/collectors/own-token", apiclient.OwnToken{Name: "uninvited", SecretHash: strings.Repeat("0", 64), Machines: []string{}})
	},
	"register-collector": func(w *rolesWorld) example { return asJSON("/collectors/register", unnamed("own")) },
	"heartbeat": func(w *rolesWorld) example {
		return asJSON("/collectors/own/heartbeat", apiclient.Heartbeat{Epoch: w.registered().Collector.Epoch})
	},
	"start-run": func(w *rolesWorld) example {
		run := bench.NewRunID(w.submit(w.t, w.tag()).key, "workflow", "activity", 1)
		return asJSON("/runs/"+string(run)+"/start", w.runStart(w.t, run, w.registered()))
	},
	"upload-block": func(w *rolesWorld) example {
		run, j := w.run()
		return asJSON("/runs/"+string(run)+"/blocks/1", block(j.cases, 1))
	},
	"finish-run": onRun("/runs/%s/finish", apiclient.RunFinish{Outcome: bench.RunSuccess}),
	"append-run-log": func(w *rolesWorld) example {
		run, _ := w.run()
		return example{"/runs/" + string(run) + "/log?offset=0", "output\n", "application/octet-stream"}
	},
	"upload-profile": onRun("/runs/%s/profile/batches", samples("a1", sampled(cpuUsed, "a1", 0, 3))),
	// Runs that make no profile: they are refused after everything else was checked.
	"upload-run-file": func(w *rolesWorld) example { // a run that keeps none: it is refused after everything else was checked
		run, _ := w.run()
		return example{"/runs/" + string(run) + "/files?path=report", "text", "application/octet-stream"}
	},
	"upload-raw-profile": func(w *rolesWorld) example {
		run, _ := w.run()
		return example{"/runs/" + string(run) + "/code-profile/raw", "raw", "application/octet-stream"}
	},
	"upload-code-profile": func(w *rolesWorld) example {
		run, _ := w.run()
		return example{"/runs/" + string(run) + "/code-profile?format=pprof&raw=" + strings.Repeat("0", 64), "profile", "application/octet-stream"}
	},
	// As above, a run that builds nothing: it is refused after everything else was checked.
	"upload-build-chunk": func(w *rolesWorld) example {
		run, _ := w.run()
		return example{"/runs/" + string(run) + "/build/chunks/0", "piece", "application/octet-stream"}
	},
	"finish-build": onRun("/runs/%s/build/finish", apiclient.BuildFinish{Size: 5, SHA256: strings.Repeat("0", 64)}),
}

// buildKey names a build that is not stored.
var buildKey = strings.Repeat("0", 64)

// operations reads the API's own description, in the order of paths and methods.
func operations(t *testing.T, b *bundle) []described {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal([]byte(b.send(t, "", http.MethodGet, "/openapi.json", "").body), &d))
	var all []described
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			_, role, _ := strings.Cut(d.Paths[path][method].Description, "Needs a token with the role ")
			role, _, _ = strings.Cut(role, ".")
			all = append(all, described{id: d.Paths[path][method].OperationID, method: strings.ToUpper(method), path: path, role: role})
		}
	}
	return all
}

// described is an operation of the OpenAPI document with the role that it says it needs;
// empty: none.
type described struct{ id, method, path, role string }

// Every operation is called by every caller. The table of answers is the rights of the
// API; a new operation has no example and fails here. Look at each change of the table:
// it is written with -update.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	closed := newRolesWorld(t, func(c *api.Config) { c.OpenRead = false })
	open := newRolesWorld(t, func(c *api.Config) { c.OpenRead = true })
	for _, w := range []*rolesWorld{closed, open} { // some tokens change this one
		w.enrol(t, "third")
		_, err := w.client(t, "third").RegisterCollector(t.Context(), unnamed("third"))
		require.NoError(t, err)
	}

	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\t\n", strings.Join(callers, "\t"))
	for _, op := range operations(t, closed.bundle) {
		call, ok := examples[op.id]
		require.True(t, ok, "%s %s has no example in this file: add one, then run with -update and look at who may call it", op.method, op.path)
		fmt.Fprintf(table, "%s %s\t", op.method, strings.TrimPrefix(op.path, "/api/v1"))
		reads := op.method == http.MethodGet
		// One example serves all who read, and all who are refused, as nothing happens then.
		used := func(status int) bool {
			return !reads && status != http.StatusUnauthorized && status != http.StatusForbidden
		}
		shown, shownOpen := call(closed), call(open)
		var gone, goneOpen bool
		for _, who := range callers {
			if gone {
				shown = call(closed)
			}
			strict := closed.answer(op, who, shown)
			gone = used(strict)
			checkAnswer(t, op, who, strict)
			lax := strict
			switch {
			case reads:
				lax = open.answer(op, who, shownOpen)
			case who == "none" || who == "reader": // those whom open reading could concern
				if goneOpen {
					shownOpen = call(open)
				}
				status := open.answer(op, who, shownOpen)
				goneOpen = used(status)
				require.Equal(t, strict, status, "open reading changes nothing for %s %s by %s", op.method, op.path, who)
			}
			cell := strconv.Itoa(strict)
			if strict != lax {
				cell += "|" + strconv.Itoa(lax)
			}
			fmt.Fprintf(table, "%s\t", cell)
		}
		fmt.Fprintln(table)
	}
	require.NoError(t, table.Flush())
	text := "Answers of the API to each caller; where reading without a token changes one: closed|open.\n" +
		"Written by 'go test ./api -run TestWhoMayDoWhat -update'. Callers are described in roles_test.go.\n\n" + trimmed(out.String())
	const golden = "testdata/roles.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "run with -update and look at the difference")
}

// trimmed removes spaces at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// answer is the status of a caller's call of an operation.
func (w *rolesWorld) answer(op described, who string, e example) int {
	w.t.Helper()
	role := who
	if who == "none" {
		role = ""
	}
	var headers []string
	if e.contentType != "" {
		headers = []string{"Content-Type", e.contentType}
	}
	before := w.lastEntry()
	got := w.send(w.t, role, op.method, "/api/v1"+e.path, e.body, headers...)
	if (op.role == "writer" || op.role == "admin") && op.method != http.MethodGet && !slices.Contains(unchanged, op.id) {
		require.Equal(w.t, got.status < 300, w.lastEntry() > before, "%s by %s, answered with %d: what changes something is in the audit, and nothing else", op.id, who, got.status)
	}
	require.Less(w.t, got.status, 500, "%s %s by %s: %s", op.method, op.path, who, got.body)
	if got.status >= 400 {
		got.problem(w.t)
	}
	return got.status
}

// unchanged are operations whose examples change nothing.
var unchanged = []string{"apply-project", "unstick-request", "invalidate-results", "purge-artifact"}

// lastEntry is the ID of the newest entry of the audit; 0 without one.
func (w *rolesWorld) lastEntry() int64 {
	w.t.Helper()
	entries, err := w.store.Audit(w.t.Context(), store.AuditFilter{Limit: 1})
	require.NoError(w.t, err)
	if len(entries) == 0 {
		return 0
	}
	return entries[0].ID
}

// permitted says which callers have the role that an operation names.
var permitted = map[string][]string{
	"reader":              {"reader", "elsewhere", "writer", "admin elsewhere", "admin"},
	"reader or collector": {"reader", "elsewhere", "writer", "admin elsewhere", "admin", "other", "own"},
	"writer":              {"writer", "admin"},
	"admin":               {"admin"},
	"collector":           {"own"},
}

// checkAnswer holds the table against the rules that the document names, so that -update
// cannot write down a hole.
func checkAnswer(t *testing.T, op described, who string, status int) {
	t.Helper()
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case slices.Contains([]string{"unknown", "expired", "revoked"}, who):
		require.Equal(t, http.StatusUnauthorized, status, "%s by %s", op.id, who)
	case op.role == "":
		require.False(t, refused, "%s by %s", op.id, who)
	case slices.Contains(permitted[op.role], who):
		require.False(t, refused, "%s needs the role %s, which %s has", op.id, op.role, who)
	case op.id == "put-suite" && strings.HasSuffix(who, "elsewhere"): // it belongs to no project
		require.Equal(t, http.StatusOK, status)
	default: // also put-own-token by whom it is for: here, each collector has to be invited
		require.True(t, refused, "%s needs the role %s: %s got %d", op.id, op.role, who, status)
	}
}
