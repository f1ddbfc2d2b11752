//go:build linux

package threehosts_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store/storetest"
)

// Addresses of the hosts.
const (
	hub   = "10.77.0.1"
	first = "10.77.0.2"
	other = "10.77.0.3"
)

// Accounts of the processes: collectors do not run as root.
const (
	root   = 0
	nobody = 65534
)

const (
	api = "https://" + hub + ":7480"
	ui  = "https://" + hub + ":8233"
)

// program finds a program built by 'make build', where accounts without rights can run it.
func program(t *testing.T, n *network, variable, name string) string {
	t.Helper()
	from := os.Getenv(variable)
	if from == "" {
		from = filepath.Join("..", "..", "..", "bin", name)
	}
	text, err := os.ReadFile(from)
	require.NoError(t, err, "%s is missing: run 'make build'", name)
	to := filepath.Join(n.dir, name)
	require.NoError(t, os.WriteFile(to, text, 0o755))
	return to
}

// world is the service on three hosts: one with Temporal, API and orchestrator, two with a
// collector.
type world struct {
	*network
	t              *testing.T
	hub, one, two  *host
	benchloom      string
	foreign        *authority
	database       string            // its address, as a variable
	admin          string            // token of the first administrator
	people         map[string]string // tokens by role
	collectors     map[string]string // tokens by name
	queues         map[string]string // task queues by collector
	firstCollector *process
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

// call runs a command of a person with a token.
func (w *world) call(token string, args ...string) (string, error) {
	file := w.hub.path("token-of-a-person")
	require.NoError(w.t, os.WriteFile(file, []byte(token), 0o600))
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	return w.hub.run(w.t, root, w.benchloom, slices.Insert(slices.Clone(args), end, "--api", api, "--tls-ca", w.file(), "--token-file", file)...)
}

func (w *world) must(token string, args ...string) string {
	w.t.Helper()
	out, err := w.call(token, args...)
	require.NoError(w.t, err, "%s: %s", args, out)
	return out
}

// from is a call from a host with its own certificate and a token.
func (w *world) from(h *host, token, call, to string) probe {
	return probe{Call: call, To: to, CA: w.file(), Certificate: h.dir, Token: token}
}

// TestLongThreeHostsWithTLSEverywhere goes through docs/operations.md, "Three hosts, with TLS
// everywhere", and then tries what docs/security.md says that nobody may.
func TestLongThreeHostsWithTLSEverywhere(t *testing.T) {
	w := startWorld(t)
	w.peopleAndCollectors()
	for name, story := range map[string]func(*testing.T){
		"roles":        w.roles,
		"certificates": w.certificates,
		"collectors":   w.collectorsStayApart,
		"web UI":       w.webUI,
	} {
		t.Run(name, story)
	}
	t.Run("revocation", w.revocation)
}

// startWorld starts the first host's processes.
func startWorld(t *testing.T) *world {
	t.Helper()
	n := newNetwork(t)
	w := &world{network: n, t: t, foreign: newAuthority(t), people: make(map[string]string), collectors: make(map[string]string), queues: make(map[string]string)}
	w.hub, w.one, w.two = n.add(t, "hub", hub, root), n.add(t, "one", first, nobody), n.add(t, "two", other, nobody)
	w.benchloom = program(t, n, "BENCHLOOM_BIN", "benchloom")
	temporal := program(t, n, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev")
	h := w.hub
	w.admin = newToken(t, h.path("admin.token"))
	newToken(t, h.path("temporal.token"))
	w.database = "DATABASE_URL=" + storetest.EmptyURL(t)
	h.environ = append(h.environ, w.database)
	h.start(t, root, temporal, "--db-file", h.path("temporal.db"), "--ip", hub, "--tls-cert", certFile(h.dir), "--tls-key", keyFile(h.dir), "--tls-client-ca", w.file(),
		"--token-file", h.path("temporal.token"), "--api", api, "--api-ca", w.file(), "--ui-socket", h.path("ui.sock"))
	h.start(t, root, w.benchloom, "api", "--listen", hub+":7480", "--tls-cert", certFile(h.dir), "--tls-key", keyFile(h.dir), "--user-token-file", h.path("admin.token"),
		"--temporal-token-file", h.path("temporal.token"), "--temporal-ui-listen", hub+":8233", "--temporal-ui-socket", h.path("ui.sock"))
	h.start(t, root, w.benchloom, "orchestrator", "--temporal-token-file", h.path("temporal.token"), "--cache-dir", h.path("cache"))
	require.Eventually(t, func() bool {
		_, err := w.call(w.admin, "collector", "list")
		return err == nil
	}, patience, 200*time.Millisecond, "the API does not answer")
	return w
}

// peopleAndCollectors gives people tokens and enrols the two other hosts.
func (w *world) peopleAndCollectors() {
	secret := regexp.MustCompile(`blm_[a-z0-9]+`)
	for _, role := range []string{"reader", "writer", "admin"} {
		w.people[role] = secret.FindString(w.must(w.admin, "token", "create", "a-"+role, "--role", role))
		require.NotEmpty(w.t, w.people[role])
	}
	for name, h := range map[string]*host{"bench-1": w.one, "bench-2": w.two} {
		invited := w.must(w.admin, "collector", "invite", name, "--size-class", "1", "--pool", "pool-of-"+name)
		enrolment := regexp.MustCompile(`ble_[a-z0-9]+`).FindString(invited)
		out, err := h.run(w.t, nobody, w.benchloom, "collector", "enroll", api, enrolment, "--tls-ca", w.file(), "--temporal", hub+":7233", "--state-dir", h.path("state"))
		require.NoError(w.t, err, out)
		p := h.start(w.t, nobody, w.benchloom, "collector", "run", "--state-dir", h.path("state"), "--co-located")
		if h == w.one {
			w.firstCollector = p
		}
		token, err := os.ReadFile(h.path("state/token"))
		require.NoError(w.t, err)
		w.collectors[name] = strings.TrimSpace(string(token))
	}
	require.Eventually(w.t, func() bool {
		out, err := w.call(w.people["reader"], "collector", "list")
		return err == nil && strings.Contains(out, "pool-of-bench-1") && strings.Contains(out, "pool-of-bench-2") && !strings.Contains(out, "offline")
	}, patience, 200*time.Millisecond, "the collectors do not register")
	for name, token := range w.collectors {
		info := w.two.try(w.t, w.from(w.two, token, http.MethodGet, api+"/api/v1/info"))
		w.queues[name] = regexp.MustCompile(`bench/[^"]*/pool-of-` + name).FindString(info)
		require.NotEmpty(w.t, w.queues[name], info)
	}
}

// roles: people do what their role allows, on the API and in Temporal, and no more.
func (w *world) roles(t *testing.T) {
	rank := map[string]int{"reader": 1, "writer": 2, "admin": 3}
	for role, token := range w.people {
		for least, command := range map[string][]string{
			"reader": {"queue", "list"},
			"writer": {"submit", "--adhoc", "--machine", "bench-1", "--wait", "--", "/bin/echo", "hello"},
			"admin":  {"queue", "set-weight", "user:a-" + role, "2", "--create"},
		} {
			out, err := w.call(token, command...)
			if rank[role] >= rank[least] {
				require.NoError(t, err, "%s: %s: %s", role, command, out)
				continue
			}
			require.Error(t, err, "%s: %s", role, command)
			require.Contains(t, out, "has the role "+role+", but this needs the role "+least)
		}
		refused := "may only look at workflows"
		if role == "admin" {
			refused = "not for people"
		}
		for call, least := range map[string]string{
			"look": "reader", "terminate": "admin", "signal": "admin", "poll": "nobody", "poll for workflows": "nobody", "answer a task": "nobody",
		} {
			outcome := w.two.try(t, w.from(w.two, token, call, w.queues["bench-2"]))
			if least != "nobody" && rank[role] >= rank[least] {
				require.Regexp(t, `^(OK|NotFound) `, outcome, "%s: %s", role, call)
			} else {
				require.Regexp(t, `^PermissionDenied .*`+refused, outcome, "%s: %s", role, call)
			}
		}
	}
	// Strangers: reading is closed, as other machines reach the API.
	outcome := w.two.try(t, w.from(w.two, "", http.MethodGet, api+"/api/v1/collectors"))
	require.Contains(t, outcome, "401 ")
}

// certificates: Temporal answers nobody without a certificate of the authority, whatever the
// token, and nobody without a token, whatever the certificate. The log of a refused process
// says why.
func (w *world) certificates(t *testing.T) {
	token := w.people["admin"]
	foreignCA := filepath.Join(w.dir, "foreign.pem")
	w.foreign.save(t, foreignCA)
	foreign := w.foreign.issue(t, filepath.Join(w.dir, "foreign"), first, later)
	expired := w.ca.issue(t, filepath.Join(w.dir, "expired"), first, earlier)
	good := w.from(w.one, token, "look", "")
	require.Contains(t, w.one.try(t, good), "OK ")
	for name, c := range map[string]struct {
		change func(*probe)
		reason string
	}{
		"in clear":                          {func(p *probe) { p.CA, p.Certificate = "", "" }, "Unavailable "},
		"without a certificate":             {func(p *probe) { p.Certificate = "" }, "certificate required"},
		"with one of another authority":     {func(p *probe) { p.Certificate = foreign }, "unknown certificate authority"},
		"with an expired one":               {func(p *probe) { p.Certificate = expired }, "expired certificate"},
		"to a server of another authority":  {func(p *probe) { p.CA = foreignCA }, "signed by unknown authority"},
		"without a token":                   {func(p *probe) { p.Token = "" }, "PermissionDenied a call of Temporal needs a token"},
		"with an invented token":            {func(p *probe) { p.Token = "blm_" + strings.Repeat("a", 32) }, "PermissionDenied this token is not known"},
		"with the token of another service": {func(p *probe) { p.Token = "ghp_" + strings.Repeat("a", 32) }, "PermissionDenied this token is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			c.change(&p)
			require.NotContains(t, w.one.try(t, p), "OK ")
			// The server hangs up after its refusal, which may overtake it.
			w.one.awaitOutcome(t, p, c.reason)
		})
	}
	// Processes tell the reason.
	for name, c := range map[string]struct {
		ca, certificate string
		reasons         []string
	}{
		"without a certificate":            {w.file(), "", []string{"certificate required"}},
		"with one of another authority":    {w.file(), foreign, []string{"unknown certificate authority", "certificate required"}}, // it need not be sent
		"with an expired one":              {w.file(), expired, []string{"expired certificate"}},
		"to a server of another authority": {foreignCA, w.hub.dir, []string{"signed by unknown authority"}},
		"without a token":                  {w.file(), w.hub.dir, []string{"needs a token of Benchloom"}},
	} {
		t.Run("an orchestrator "+name, func(t *testing.T) {
			h := *w.hub
			h.environ = append(h.with(c.ca, c.certificate), w.database)
			args := []string{"orchestrator", "--cache-dir", h.path("cache")}
			if name != "without a token" {
				args = append(args, "--temporal-token-file", h.path("temporal.token"))
			}
			h.start(t, root, w.benchloom, args...).await(t, c.reasons...)
		})
	}
	// So do people's commands.
	out, err := w.hub.run(t, root, w.benchloom, "collector", "list", "--api", api, "--tls-ca", foreignCA, "--token-file", w.hub.path("admin.token"))
	require.Error(t, err)
	require.Contains(t, out, "signed by unknown authority")
	out, err = w.hub.run(t, root, w.benchloom, "collector", "list", "--api", strings.Replace(api, "https", "http", 1), "--token-file", w.hub.path("admin.token"))
	require.Error(t, err)
	require.Contains(t, out, "plain HTTP would show tokens")
}

// collectorsStayApart: a collector's token opens its own work, not that of another host, and
// no workflow.
func (w *world) collectorsStayApart(t *testing.T) {
	own := w.collectors["bench-1"]
	for call, reason := range map[string]string{
		"poll":               `collector bench-1 may not poll "` + regexp.QuoteMeta(w.queues["bench-2"]) + `"`,
		"poll for workflows": "a collector may not call PollWorkflowTaskQueue",
		"start":              "a collector may not call StartWorkflowExecution",
		"signal":             "a collector may not call SignalWorkflowExecution",
		"terminate":          "a collector may not call TerminateWorkflowExecution",
		"look":               "a collector may not call ListWorkflowExecutions",
		"answer a task":      "a collector may not call RespondActivityTaskCompletedById",
	} {
		require.Regexp(t, "^PermissionDenied .*"+reason, w.one.try(t, w.from(w.one, own, call, w.queues["bench-2"])), call)
	}
	beat := func(name string) string { return fmt.Sprintf("%s/api/v1/collectors/%s/heartbeat", api, name) }
	require.Contains(t, w.one.try(t, w.from(w.one, own, http.MethodPost, beat("bench-1"))), "422 ", "let in, and incomplete")
	outcome := w.one.try(t, w.from(w.one, own, http.MethodPost, beat("bench-2")))
	require.Contains(t, outcome, "403 ")
	require.Contains(t, outcome, "belongs to collector bench-1 and gives no access to collector bench-2")
	require.Contains(t, w.one.try(t, w.from(w.one, own, http.MethodGet, api+"/api/v1/collectors")), "403 ")
}

// webUI: Temporal's Web UI has the sign-in and the roles of the API.
func (w *world) webUI(t *testing.T) {
	const terminate = ui + "/api/v1/namespaces/benchloom/workflows/none/terminate"
	for token, c := range map[string]struct{ look, act string }{
		"":                      {"401 ", "401 "},
		w.collectors["bench-1"]: {"401 ", "401 "},
		w.people["reader"]:      {"200 ", "405 "},
		w.people["writer"]:      {"200 ", "405 "},
		w.people["admin"]:       {"200 ", "404 "}, // there is no such workflow
	} {
		outcome := w.two.try(t, w.from(w.two, token, http.MethodGet, ui+"/api/v1/namespaces/benchloom"))
		require.Regexp(t, "^"+c.look, outcome)
		outcome = w.two.try(t, w.from(w.two, token, http.MethodPost, terminate))
		require.Regexp(t, "^"+c.act, outcome)
	}
}

// revocation: a revoked token ends a collector's writes at once, its polls within a minute, and
// the collector itself; the other one goes on. Those of people end in the same way.
func (w *world) revocation(t *testing.T) {
	collector, person := w.collectors["bench-1"], w.people["admin"]
	look := w.from(w.two, person, "look", "")
	require.Contains(t, w.two.try(t, look), "OK ", "and Temporal remembers it")
	w.revoke("bench-1")
	w.revoke("a-admin")

	outcome := w.one.try(t, w.from(w.one, collector, http.MethodPost, api+"/api/v1/collectors/bench-1/heartbeat"))
	require.Regexp(t, "^401 .*was revoked", outcome)
	out, err := w.call(person, "queue", "set-weight", "user:a-reader", "3")
	require.Error(t, err)
	require.Contains(t, out, "was revoked")
	require.Contains(t, w.two.try(t, w.from(w.two, person, http.MethodGet, ui+"/api/v1/namespaces/benchloom")), "401 ")

	const refused = "PermissionDenied this token is not known, was revoked or has expired"
	w.one.awaitOutcome(t, w.from(w.one, collector, "poll", w.queues["bench-1"]), refused)
	w.two.awaitOutcome(t, look, refused)
	w.firstCollector.await(t, "the API lets collector bench-1 in no longer")
	select {
	case <-w.firstCollector.ended:
		require.Equal(t, 6, w.firstCollector.code)
	case <-time.After(patience):
		require.Fail(t, "the collector goes on")
	}
	require.Contains(t, w.must(w.people["writer"], "submit", "--adhoc", "--machine", "bench-2", "--wait", "--", "/bin/echo", "hello"), "success")
}

// revoke revokes the token of an account, or of a collector.
func (w *world) revoke(owner string) {
	w.t.Helper()
	listed := w.must(w.admin, "token", "list", "-o", "json")
	id := regexp.MustCompile(`"id": *"(t[a-z0-9]+)",\s*"owner": *"` + owner + `"`).FindStringSubmatch(listed)
	require.NotNil(w.t, id, listed)
	w.must(w.admin, "token", "revoke", id[1], "--reason", owner+" has left")
}
