package hostile_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// patience bounds every wait for something that takes seconds: the machine may be busy.
const patience = 5 * time.Minute

const target = bench.Target("x86_64-unknown-linux-gnu")

// shared is the stack of all tests that end nothing of it.
var shared struct {
	once sync.Once
	s    *livestack.Stack
	spy  *spy
	err  error
}

func TestMain(m *testing.M) {
	// Many benchmarks here wait for files of their test, which isolated ones do not see: those that try to break out say
	// --isolation on.
	if err := os.Setenv("BENCHLOOM_ISOLATION", "off"); err != nil {
		panic(err)
	}
	code := m.Run()
	if shared.s != nil {
		if err := shared.s.Stop(code == 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if shared.spy != nil {
		if err := shared.spy.remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// programs finds the binaries as the tests of internal/e2e do.
func programs() livestack.Programs {
	path := func(variable, name string) string {
		if named := os.Getenv(variable); named != "" {
			return named
		}
		return filepath.Join("../../../bin", name)
	}
	return livestack.Programs{Benchloom: path("BENCHLOOM_BIN", "benchloom"), Temporal: path("BENCHLOOM_TEMPORAL_DEV", "temporal-dev")}
}

// service is a running stack with its operator's credentials.
type service struct {
	*livestack.Stack
	url string
}

// sharedStack is a stack with three collectors that all tests use together.
func sharedStack(t *testing.T) service {
	t.Helper()
	shared.once.Do(func() {
		if shared.spy, shared.err = newSpy(); shared.err != nil {
			return
		}
		p := programs()
		p.Environ = shared.spy.environ()
		shared.s, shared.err = livestack.Start(context.Background(), p, "--collectors", "3x1", "--share-cores", "--co-located")
	})
	require.NoError(t, shared.err)
	return service{Stack: shared.s, url: shared.s.Up.Addresses[up.AddressAPI]}
}

// ownStack is a stack of the test's own, for what would disturb others.
func ownStack(t *testing.T, args ...string) service {
	t.Helper()
	s, err := livestack.Start(t.Context(), programs(), append([]string{"--collectors", "1x1", "--share-cores", "--co-located"}, args...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		failed := t.Failed()
		if err := s.Stop(!failed); err != nil {
			t.Log(err)
			require.True(t, failed, "the stack did not stop well")
		}
	})
	return service{Stack: s, url: s.Up.Addresses[up.AddressAPI]}
}

func (s service) token(t *testing.T, name string) string {
	t.Helper()
	token, err := devstack.ReadToken(s.State(), name)
	require.NoError(t, err)
	return token
}

func (s service) temporal(t *testing.T) client.Client {
	t.Helper()
	c, err := s.Temporal(t.Context())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func (s service) database(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// run runs a client command of the binary.
func (s service) run(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	p := programs()
	require.NoError(t, p.Find())
	command := exec.CommandContext(t.Context(), p.Benchloom, args...)
	command.Env = append(os.Environ(), "BENCHLOOM_STATE_DIR="+s.State(), "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=")
	out, err := command.CombinedOutput()
	return string(out), err
}

// reply is an answer as it travelled.
type reply struct {
	status int
	kind   string // of its problem, such as not-yours; empty: it is none
	body   string
}

func (r reply) String() string { return fmt.Sprintf("%d %s %.300s", r.status, r.kind, r.body) }

// call sends a body as it is; strings and bytes unchanged, anything else as JSON.
func (s service) call(t *testing.T, token, method, path string, body any, headers ...string) reply {
	t.Helper()
	var text []byte
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	case []byte:
		text, kind = b, "application/octet-stream"
	default:
		var err error
		text, err = json.Marshal(b)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if text != nil {
		request.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	r := reply{status: response.StatusCode, body: string(answer)}
	var problem struct{ Type string }
	if json.Unmarshal(answer, &problem) == nil {
		r.kind = strings.TrimPrefix(problem.Type, "urn:benchloom:")
	}
	return r
}

// enrolled is a collector that was invited and enrolled, with its own token.
type enrolled struct {
	name, token, invitation string
	registration            map[string]any
	epoch                   int64
}

// enrol invites a collector to a pool of its own, enrols and registers it.
func (s service) enrol(t *testing.T, name string, class bench.SizeClass) *enrolled {
	t.Helper()
	return s.enrolIn(t, name, class, "pool-of-"+name)
}

// enrolIn enrols a collector in a pool.
func (s service) enrolIn(t *testing.T, name string, class bench.SizeClass, pool string) *enrolled {
	t.Helper()
	invited, err := s.API.InviteCollector(t.Context(), apiclient.Invite{Name: name, Target: target, SizeClass: class, Pool: pool})
	require.NoError(t, err)
	e := &enrolled{name: name, invitation: invited.Token}
	e.token, err = api.NewToken(rand.Reader)
	require.NoError(t, err)
	_, err = s.API.EnrollCollector(t.Context(), apiclient.Enrolment{Token: invited.Token, SecretHash: hash(e.token), Host: target})
	require.NoError(t, err)
	e.registration = map[string]any{
		"name": name, "target": "", "size_class": 0, "pool": "", "machine_id": "machine-of-" + name, "version": "dev", "hardware_id": "hardware-of-" + name,
		"facts": map[string]any{}, "co_located": true,
	}
	e.register(t, s)
	return e
}

// register registers the collector and takes over its new epoch.
func (e *enrolled) register(t *testing.T, s service) {
	t.Helper()
	r := s.call(t, e.token, http.MethodPost, "/api/v1/collectors/register", e.registration)
	require.Equal(t, http.StatusOK, r.status, r)
	var registered apiclient.Registered
	require.NoError(t, json.Unmarshal([]byte(r.body), &registered))
	e.epoch = registered.Collector.Epoch
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// apply uploads a suite and applies a project with it.
func (s service) apply(t *testing.T, project, text string) (suiteHash string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(text), 0o644))
	bundle, err := suite.Pack(dir)
	require.NoError(t, err)
	_, err = s.API.PutSuite(t.Context(), bundle.Hash, bundle.Archive)
	require.NoError(t, err)
	_, err = s.API.ApplyProject(t.Context(), apiclient.Project{Name: project, Config: bench.ProjectConfig{Verify: bench.VerifyOff}, SuiteHash: bundle.Hash}, false)
	require.NoError(t, err)
	return bundle.Hash
}

// held is a file that keeps commands running as long as it exists.
func held(t *testing.T) (file string, release func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hostile-held-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	file = filepath.Join(dir, "held")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	release = sync.OnceFunc(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(release)
	return file, release
}

// runOf waits until a request's only job has a run.
func (s service) runOf(t *testing.T, id bench.RequestID) apiclient.Run {
	t.Helper()
	var runs []apiclient.Run
	require.Eventually(t, func() bool {
		d, err := s.API.Request(t.Context(), string(id))
		require.NoError(t, err)
		require.NotEqual(t, bench.Completed, d.Status, d.Message)
		runs = d.Runs
		return len(runs) > 0
	}, patience, 50*time.Millisecond, "no collector runs request %s", id)
	return runs[0]
}

// await waits until a request has ended.
func (s service) await(t *testing.T, id bench.RequestID) apiclient.RequestDetail {
	t.Helper()
	var detail apiclient.RequestDetail
	require.Eventually(t, func() bool {
		var err error
		detail, err = s.API.Request(t.Context(), string(id))
		return err == nil && detail.Status == bench.Completed
	}, patience, 50*time.Millisecond, "request %s does not end", id)
	return detail
}
