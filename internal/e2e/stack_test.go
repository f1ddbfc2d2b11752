package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/starter"
)

// patience bounds every wait for something that takes seconds: the machine may be busy.
const patience = 5 * time.Minute

// stack is a running `benchloom up` with its own state directory.
type stack struct {
	dir, bin string
	args     []string
	through  []string // the command that starts the service, such as setpriv; empty: none
	postgres string   // URL of the record; empty: the stack has its own Postgres
	points   string   // directory of failure points
	up       devstack.Up
	api      *apiclient.Client
	command  *exec.Cmd
	output   *lockedBuffer
	exited   chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// binary finds a program built by 'make build'.
func binary(t *testing.T, variable, name string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(repository(t), "bin", name)
	}
	_, err := os.Stat(path)
	require.NoError(t, err, "%s is missing: run 'make build'", name)
	return path
}

// repository returns the root of the checkout.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, "/", dir, "no go.mod above the test")
		dir = filepath.Dir(dir)
	}
}

// startStack starts the service and stops it when the test ends. Its record is a database
// of the Postgres that the tests share.
func startStack(t *testing.T, args ...string) *stack {
	t.Helper()
	return launch(t, storetest.URL(t), args...)
}

// startWhole starts the service as users do, with its own Postgres, for tests that kill
// it or last through the life of a project.
func startWhole(t *testing.T, args ...string) *stack {
	t.Helper()
	return launch(t, "", args...)
}

func launch(t *testing.T, postgres string, args ...string) *stack {
	t.Helper()
	dir := t.TempDir()
	s := &stack{
		dir: filepath.Join(dir, "state"), bin: binary(t, "BENCHLOOM_BIN", "benchloom"), points: filepath.Join(dir, "points"),
		args: args, postgres: postgres,
	}
	require.NoError(t, os.MkdirAll(s.points, 0o777))
	s.start(t)
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			s.dump(t)
		}
	})
	return s
}

// temporalProgram returns the embedded Temporal: beside the binary if it was copied, so that every user may run it.
func (s *stack) temporalProgram(t *testing.T) string {
	t.Helper()
	built := binary(t, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev")
	if beside := filepath.Join(filepath.Dir(s.bin), filepath.Base(built)); len(s.through) > 0 {
		return beside
	}
	return built
}

func (s *stack) start(t *testing.T) {
	t.Helper()
	args := append([]string{"up", "--state-dir", s.dir, "--api-port", "0", "--metrics-port", "0", "--temporal-port", "0", "--temporal-ui-port", "0", "--co-located"}, s.args...)
	argv := slices.Concat(s.through, []string{s.bin}, args)
	s.command = exec.Command(argv[0], argv[1:]...)
	if len(s.through) > 0 {
		s.command.Dir = filepath.Dir(s.dir) // where its user may be
	}
	s.output = &lockedBuffer{}
	s.command.Stdout, s.command.Stderr = s.output, s.output
	s.command.Env = append(os.Environ(), "BENCHLOOM_TEMPORAL_DEV="+s.temporalProgram(t),
		failpoint.Env+"="+s.points, "TEMPORAL_ADDRESS=", "DATABASE_URL="+s.postgres)
	require.NoError(t, s.command.Start())
	s.exited = make(chan error, 1)
	go func(c *exec.Cmd, exited chan<- error) { exited <- c.Wait() }(s.command, s.exited)
	require.Eventually(t, func() bool {
		var err error
		s.up, err = devstack.ReadUp(s.dir)
		return err == nil || len(s.exited) > 0
	}, patience, 20*time.Millisecond, "the stack is not ready")
	require.Empty(t, s.exited, "the stack ended: %s", s.output)
	token, err := devstack.ReadToken(s.dir, up.TokenUser)
	require.NoError(t, err)
	s.api, err = apiclient.New(s.up.Addresses[up.AddressAPI], token, &http.Client{Timeout: patience})
	require.NoError(t, err)
}

// stop stops the stack as Ctrl-C does.
func (s *stack) stop(t *testing.T) {
	t.Helper()
	if s.command == nil {
		return
	}
	require.NoError(t, s.command.Process.Signal(os.Interrupt))
	s.awaitExit(t)
}

func (s *stack) awaitExit(t *testing.T) {
	t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		_ = s.command.Process.Kill()
		t.Errorf("the stack did not stop:\n%s", s.output)
	}
	s.command = nil
}

// dump prints the logs of the processes.
func (s *stack) dump(t *testing.T) {
	t.Logf("up:\n%s", s.output)
	logs, _ := filepath.Glob(filepath.Join(s.dir, "logs", "*.log"))
	for _, file := range logs {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if len(text) > 6000 {
			text = text[len(text)-6000:]
		}
		t.Logf("%s:\n%s", filepath.Base(file), text)
	}
}

// run runs a client command of the binary.
func (s *stack) run(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	command := exec.Command(s.bin, args...)
	command.Env = append(os.Environ(), "BENCHLOOM_STATE_DIR="+s.dir, "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=")
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	if err != nil {
		t.Logf("benchloom %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String(), command.ProcessState.ExitCode()
}

// database connects to the stack's Postgres, as an operator would.
func (s *stack) database(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// temporal connects to the stack's Temporal, as an operator would.
func (s *stack) temporal(t *testing.T) client.Client {
	t.Helper()
	token, err := devstack.ReadToken(s.dir, up.TokenTemporal)
	require.NoError(t, err)
	c, err := starter.Dial(t.Context(), starter.Connection{Address: s.up.Addresses[up.AddressTemporal], Namespace: "benchloom", Token: token, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// applyProject uploads a suite and applies a project with it.
func (s *stack) applyProject(t *testing.T, name, suiteDir string, config bench.ProjectConfig) {
	t.Helper()
	if config.Verify == "" {
		config.Verify = bench.VerifyOff // tests that are not about verdicts measure nothing again
	}
	bundle, err := suite.Pack(suiteDir)
	require.NoError(t, err)
	_, err = s.api.PutSuite(t.Context(), bundle.Hash, bundle.Archive)
	require.NoError(t, err)
	_, err = s.api.ApplyProject(t.Context(), apiclient.Project{Name: name, Config: config, SuiteHash: bundle.Hash}, false)
	require.NoError(t, err)
}

// submit submits a request.
func (s *stack) submit(t *testing.T, r apiclient.NewRequest) apiclient.Request {
	t.Helper()
	request, err := s.api.CreateRequest(t.Context(), r)
	require.NoError(t, err)
	return request
}

// await waits until a request has ended.
func (s *stack) await(t *testing.T, id bench.RequestID, bound time.Duration) apiclient.RequestDetail {
	t.Helper()
	var detail apiclient.RequestDetail
	deadline := time.Now().Add(bound)
	for {
		got, err := s.api.Request(t.Context(), string(id))
		if err == nil {
			detail = got
			if detail.Status == bench.Completed {
				return detail
			}
		}
		require.True(t, time.Now().Before(deadline), "request %s has not ended within %s: %+v, last error %v", id, bound, detail, err)
		time.Sleep(50 * time.Millisecond)
	}
}

// hold makes every process that reaches a failure point wait until release.
func (s *stack) hold(t *testing.T, point string) (release func()) {
	t.Helper()
	file := filepath.Join(s.points, "hold-"+point)
	require.NoError(t, os.RemoveAll(filepath.Join(s.points, "reached-"+point)))
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	return sync.OnceFunc(func() { _ = os.Remove(file) })
}

// reached waits until a process waits at a failure point.
func (s *stack) reached(t *testing.T, point string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(s.points, "reached-"+point))
		return err == nil
	}, patience, 10*time.Millisecond, "no process has reached %s", point)
}

// kill ends one process of the stack with SIGKILL, by its ID.
func (s *stack) kill(t *testing.T, name string) {
	t.Helper()
	if name == "up" {
		require.NoError(t, s.command.Process.Kill())
		<-s.exited
		s.command = nil
		return
	}
	pid, err := s.pid(name)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// pid returns the ID of a process of the stack. The process may have been restarted
// since up.json was written, so the supervisor's own file is read.
func (s *stack) pid(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "processes.json"))
	if err != nil {
		return 0, err
	}
	var running []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(text, &running); err != nil {
		return 0, err
	}
	for _, p := range running {
		if p.Name == name {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("no process %s among %v", name, running)
}
