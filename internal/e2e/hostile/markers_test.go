package hostile_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/query/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
)

// marker is a secret that was planted: it may be in the tables that are documented to hold it, and nowhere else.
type marker struct {
	name, secret string
	tables       []string
}

// hunt is a stack with planted secrets.
type hunt struct {
	service
	markers []marker
	// tellTale is no secret: it is in some place of each kind, so that a search that finds nothing there is noticed.
	tellTale string
	values   map[string][]string // names for the parameters of paths
}

// plant adds a secret.
func (h *hunt) plant(t *testing.T, name string, tables ...string) string {
	t.Helper()
	secret := "planted" + randomWord(t)
	h.markers = append(h.markers, marker{name, secret, tables})
	return secret
}

// known adds a secret that the service has made.
func (h *hunt) known(name, secret string) {
	h.markers = append(h.markers, marker{name: name, secret: strings.TrimSpace(secret)})
}

// clean fails if a text holds a secret.
func (h *hunt) clean(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, m := range h.markers {
		at := bytes.Index(text, []byte(m.secret))
		if at < 0 {
			continue
		}
		require.Fail(t, "a secret is shown", "the %s is in %s: …%q…", m.name, where, text[max(0, at-200):min(len(text), at+len(m.secret)+50)])
	}
}

// What is planted as a secret is shown nowhere: not in answers, pages, logs, metrics,
// histories, command lines and environments of benchmarks; in the record it is in documented
// tables only.
func TestLongNoPlantedSecretIsShown(t *testing.T) {
	t.Parallel()
	h := newHunt(t)
	h.story(t)
	h.collect(t)
	t.Run("answers", h.inAnswers)
	t.Run("pages", h.inPages)
	t.Run("streams", h.inStreams)
	t.Run("Temporal's Web UI", h.inTheWebUI)
	t.Run("command line", h.inTheCommandLine)
	t.Run("logs", h.inLogs)
	t.Run("command lines of processes", h.inProcesses)
	t.Run("histories", h.inHistories)
	t.Run("record", h.inTheRecord)
	t.Run("files", h.inFiles)
}

// newHunt starts a stack whose database is one of another stack's cluster, by an address with a password, and whose
// environment holds secrets.
func newHunt(t *testing.T) *hunt {
	t.Helper()
	h := &hunt{tellTale: "telltale" + randomWord(t)}
	cluster := sharedStack(t)
	name := strings.ToLower("hunted_" + randomWord(t))
	_, err := cluster.database(t).Exec(t.Context(), "create database "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), cluster.Up.Addresses[up.AddressDatabase])
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), "drop database "+name+" with (force)")
		require.NoError(t, err)
	})
	database, err := url.Parse(cluster.Up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	query := database.Query()
	user := cmp.Or(query.Get("user"), database.User.Username())
	query.Del("user")
	database.User, database.Path, database.RawQuery = url.UserPassword(user, h.plant(t, "password of the database")), "/"+name, query.Encode()

	p := programs()
	p.Environ = []string{
		"DATABASE_URL=" + database.String(),
		"AWS_SECRET_ACCESS_KEY=" + h.plant(t, "operator's secret"),
		"BENCHLOOM_PASS_ENV=HOSTILE_PASSED",
		"HOSTILE_PASSED=" + h.plant(t, "value of pass_env"),
		"TEMPORAL_API_KEY=" + h.plant(t, "key of Temporal"), "TEMPORAL_TLS=false",
	}
	s, err := livestack.Start(t.Context(), p, "--collectors", "1x1", "--share-cores", "--co-located")
	require.NoError(t, err)
	t.Cleanup(func() {
		failed := t.Failed()
		if err := s.Stop(!failed); err != nil {
			t.Log(err)
			require.True(t, failed, "the stack did not stop well")
		}
	})
	h.service = service{Stack: s, url: s.Up.Addresses[up.AddressAPI]}
	return h
}

// story does what people do with secrets.
func (h *hunt) story(t *testing.T) {
	t.Helper()
	builds := t.TempDir()
	for _, tag := range []string{"1.0", "2.0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(builds, tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(builds, tag, "version"), []byte(tag), 0o644))
	}
	h.apply(t, "hunted", fmt.Sprintf(`name: hunted
artifact: {provider: directory, parameters: {path: %q}}
iterations: 1
benchmarks:
  - name: environment
    prepare: [{run: [sh, -c, "test -n \"$$HOSTILE_PASSED\""], pass_env: [HOSTILE_PASSED]}]
    measure: {run: [sh, -c, "test -z \"$$HOSTILE_PASSED\"; echo %s; env; exec cat /proc/self/environ"]}
`, builds+"/{tag}", h.tellTale))
	var requests []bench.RequestID
	for _, tag := range []string{"1.0", "2.0"} {
		requests = append(requests, h.submit(t, apiclient.NewRequest{Project: "hunted", Type: bench.Release, Tag: tag}))
	}
	inRecord := []string{"benchmark_request", "job_queue"}
	ends := map[bench.RequestID]bench.Outcome{}
	for _, command := range []struct {
		script string
		ends   bench.Outcome
	}{{`test -n "$SECRET"`, bench.Success}, {`test -z "$SECRET" || exit 3`, bench.Failure}} {
		id := h.submit(t, apiclient.NewRequest{Command: &apiclient.Command{
			Argv: []string{"sh", "-c", command.script + " # " + h.tellTale}, Env: map[string]string{"SECRET": h.plant(t, "environment of a command", inRecord...)},
		}})
		ends[id] = command.ends
		requests = append(requests, id)
	}
	batch := h.submit(t, apiclient.NewRequest{Jobs: []apiclient.NewJob{
		{Name: "one", Command: apiclient.Command{Argv: []string{"true", h.tellTale}, Env: map[string]string{"SECRET": h.plant(t, "environment in a batch", inRecord...)}}},
		{Name: "two", Command: apiclient.Command{Argv: []string{"true"}}},
	}})
	requests = append(requests, batch)
	out, err := h.run(t, "submit", "--adhoc", "--env", "SECRET="+h.plant(t, "environment of the command line", inRecord...), "--wait", "--", "true")
	require.NoError(t, err, out)
	h.clean(t, "what submit prints", []byte(out))
	for _, id := range requests {
		d := h.await(t, id)
		require.Equal(t, cmp.Or(ends[id], bench.Success), d.Outcome, d.Message)
	}
	h.refusedWithPasswords(t)
	h.makeTokens(t)
}

// refusedWithPasswords tries what is refused for a password in it.
func (h *hunt) refusedWithPasswords(t *testing.T) {
	t.Helper()
	repository := "https://ada:" + h.plant(t, "password of a repository") + "@example.org/a.git"
	_, err := h.API.ApplyProject(t.Context(), apiclient.Project{Name: "leak", Config: bench.ProjectConfig{Source: bench.CommitSource{Git: repository}}}, false)
	require.Error(t, err)
	h.clean(t, "the refusal of a repository", []byte(err.Error()))
	wrong := "blm" + "_" + h.plant(t, "token with a slip")
	for _, path := range []string{"/api/v1/requests", "/api/v1/tokens", "/metrics"} {
		r := h.call(t, wrong, http.MethodGet, path, nil)
		h.clean(t, "the answer to a wrong token", []byte(r.body))
	}
}

// makeTokens makes tokens of every kind; those of files are known as well.
func (h *hunt) makeTokens(t *testing.T) {
	t.Helper()
	created, err := h.API.CreateToken(t.Context(), apiclient.NewToken{Owner: "ada", Role: "writer"})
	require.NoError(t, err)
	h.known("token of a person", created.Secret)
	rotated, err := h.API.RotateToken(t.Context(), created.ID, apiclient.TokenRotation{})
	require.NoError(t, err)
	h.known("rotated token", rotated.Secret)
	invited, err := h.API.InviteCollector(t.Context(), apiclient.Invite{Name: "invited", Target: target, SizeClass: 9, Pool: "p"})
	require.NoError(t, err)
	h.known("invitation", invited.Token)
	e := h.enrol(t, "enrolled", 8)
	h.known("token of an enrolled collector", e.token)
	for _, pattern := range []string{"tokens/*", "collectors/*/token*"} {
		files, err := filepath.Glob(filepath.Join(h.State(), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if len(bytes.TrimSpace(text)) >= 16 {
				h.known("token in "+filepath.Base(file), string(text))
			}
		}
	}
}

// collect lists the names of what there is, for the parameters of paths.
func (h *hunt) collect(t *testing.T) {
	t.Helper()
	h.values = make(map[string][]string)
	db := h.database(t)
	for parameter, sql := range map[string]string{
		"request": `select id from benchmark_request`, "job": `select key from job_queue`, "run": `select id::text from job_run`, "collector": `select name from collector_config`,
		"project": `select name from project`, "hash": `select hash from suite_bundle`, "shape": `select distinct shape from job_queue where shape <> ''`,
	} {
		rows, err := db.Query(t.Context(), sql)
		require.NoError(t, err, sql)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, sql)
		require.NotEmpty(t, names, sql)
		h.values[parameter] = names
	}
}

var pathParameter = regexp.MustCompile(`\{([^}]*)\}`)

// filled returns the paths that a pattern stands for.
func (h *hunt) filled(pattern string) []string {
	found := pathParameter.FindStringSubmatch(pattern)
	if found == nil {
		return []string{pattern}
	}
	var out []string
	for _, value := range append(h.values[found[1]], "0") {
		out = append(out, h.filled(strings.Replace(pattern, found[0], url.PathEscape(value), 1))...)
	}
	return out
}

// get makes a request and reads the answer, headers included; of a stream, a second.
func (h *hunt) get(t *testing.T, address, token string) (status int, body []byte) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(t, err)
	if token != "" { // for the API in a header, for pages in their cookie
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Cookie", "benchloom_"+strings.TrimPrefix(h.url, "http://127.0.0.1:")+"="+token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var all bytes.Buffer
	_ = response.Header.Write(&all)
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		defer time.AfterFunc(time.Second, stop).Stop() // it would go on for ever
	}
	_, err = io.Copy(&all, response.Body)
	if ctx.Err() == nil {
		require.NoError(t, err, address)
	}
	return response.StatusCode, all.Bytes()
}

func (h *hunt) inAnswers(t *testing.T) {
	_, text := h.get(t, h.url+"/openapi.json", "")
	var document struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal(text[bytes.IndexByte(text, '{'):], &document))
	paths := []string{
		"/openapi.json", "/openapi.yaml", "/metrics", "/readyz", "/api/v1/compare?project=hunted&a=1.0&b=2.0", "/api/v1/results/export?project=hunted&format=csv",
		"/api/v1/audit?limit=200", "/api/v1/tokens?ended=true",
	}
	for path, methods := range document.Paths {
		if methods["get"] != nil {
			paths = append(paths, h.filled(path)...)
		}
	}
	answered, told := 0, 0
	for _, path := range paths {
		for _, token := range []string{"", h.token(t, up.TokenUser)} {
			status, body := h.get(t, h.url+path, token)
			h.clean(t, "GET "+path, body)
			if status == http.StatusOK {
				answered++
			}
			told += bytes.Count(body, []byte(h.tellTale))
		}
	}
	for _, address := range h.metricsAddresses(t) {
		_, body := h.get(t, "http://"+address+"/metrics", "")
		h.clean(t, "metrics of "+address, body)
	}
	require.Greater(t, answered, 100)
	require.Greater(t, told, 10)
}

func (h *hunt) inTheCommandLine(t *testing.T) {
	job, request := h.values["job"][0], h.values["request"][0]
	for _, args := range [][]string{
		{"status"}, {"status", request}, {"explain", request}, {"logs", job}, {"info"}, {"info", "-o", "json"}, {"token", "list", "--all"}, {"collector", "list", "-o", "json"},
	} {
		out, _ := h.run(t, args...) // what fails prints, too
		require.NotEmpty(t, out, args)
		h.clean(t, "benchloom "+strings.Join(args, " "), []byte(out))
	}
}

func (h *hunt) inLogs(t *testing.T) {
	files := []string{filepath.Join(h.Dir, "up.log")}
	require.NoError(t, filepath.WalkDir(filepath.Join(h.State(), "logs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	require.Greater(t, len(files), 3)
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		h.clean(t, file, text)
		all = append(all, text...)
	}
	require.Contains(t, string(all), "/sign-in", "what the forms of pages did is in a log")
}

func (h *hunt) inProcesses(t *testing.T) {
	processes, err := h.Processes()
	require.NoError(t, err)
	require.Greater(t, len(processes), 3)
	for name, pid := range processes {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		h.clean(t, "the command line of "+name, line)
	}
}

// inHistories reads all events of all workflows, what describes them, and what they tell of
// themselves.
func (h *hunt) inHistories(t *testing.T) {
	c := h.temporal(t)
	told, events, queried := 0, 0, 0
	var page []byte
	for {
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: page})
		require.NoError(t, err)
		for _, e := range list.GetExecutions() {
			h.cleanMessage(t, "the list of workflows", e)
			id := e.GetExecution().GetWorkflowId()
			if described, err := c.DescribeWorkflowExecution(t.Context(), id, e.GetExecution().GetRunId()); err == nil {
				h.cleanMessage(t, "the description of "+id, described)
				queried += h.inQueries(t, c, e)
			}
			history := c.GetWorkflowHistory(t.Context(), e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for history.HasNext() {
				event, err := history.Next()
				if err != nil {
					break // Schedules' workflows are deleted meanwhile
				}
				events++
				told += bytes.Count(h.cleanMessage(t, e.GetExecution().GetWorkflowId(), event), []byte(h.tellTale))
			}
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	require.Greater(t, events, 50)
	require.Greater(t, queried, 3)
	t.Logf("%d events, %d answers to queries", events, queried)
	require.Positive(t, told, "command lines are in histories")
}

// inQueries asks a workflow for its status and its details, as the Web UI does. It returns
// how many answers there were: not all workflows have them.
func (h *hunt) inQueries(t *testing.T, c client.Client, e *workflow.WorkflowExecutionInfo) (answered int) {
	t.Helper()
	id := e.GetExecution().GetWorkflowId()
	if !strings.HasPrefix(id, "request/") && !strings.HasPrefix(id, "job/") {
		return 0
	}
	for _, name := range []string{protocol.StatusQuery, "__temporal_workflow_metadata"} {
		answer, err := c.WorkflowService().QueryWorkflow(t.Context(), &workflowservice.QueryWorkflowRequest{
			Namespace: "benchloom", Execution: e.GetExecution(), Query: &query.WorkflowQuery{QueryType: name},
		})
		if err == nil {
			h.cleanMessage(t, name+" of "+id, answer)
			answered++
		}
	}
	return answered
}

// cleanMessage looks into a message; payloads are in it as they are, unless somebody encodes them.
func (h *hunt) cleanMessage(t *testing.T, where string, m proto.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(m)
	require.NoError(t, err)
	h.clean(t, where, text)
	return text
}

// inTheRecord reads all rows of all tables.
func (h *hunt) inTheRecord(t *testing.T) {
	db := h.database(t)
	rows, err := db.Query(t.Context(), `select quote_ident(table_name) from information_schema.tables where table_schema = 'public' order by 1`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 20)
	found := make(map[string]bool)
	for _, table := range tables {
		var text string
		require.NoError(t, db.QueryRow(t.Context(), `select coalesce(string_agg(t::text, chr(10)), '') from `+table+` t`).Scan(&text))
		for _, m := range h.markers {
			// Binary columns are written in hexadecimal digits.
			if !strings.Contains(text, m.secret) && !strings.Contains(text, hex.EncodeToString([]byte(m.secret))) {
				continue
			}
			require.Contains(t, m.tables, table, "the %s is in the table %s", m.name, table)
			found[table] = true
		}
	}
	require.Len(t, found, 2, "the environments of commands are in the record: %v", found)
}

// inFiles reads all that the stack has written, except files of tokens.
func (h *hunt) inFiles(t *testing.T) {
	read := make(map[string]bool) // what is in the state directory
	require.NoError(t, filepath.WalkDir(h.State(), func(path string, d fs.DirEntry, err error) error {
		within, _ := filepath.Rel(h.State(), path)
		first := strings.Split(within, string(filepath.Separator))[0]
		if err != nil || !d.Type().IsRegular() || first == "tokens" || strings.HasPrefix(d.Name(), "token") {
			return nil //nolint:nilerr // files come and go
		}
		text, err := os.ReadFile(path)
		if err == nil {
			read[first] = true
			h.clean(t, path, text)
		}
		return nil
	}))
	for _, name := range []string{"temporal", "logs", "up.json", "processes.json"} {
		require.True(t, read[name], "%s was not read: %v", name, read)
	}
}
