package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// asProgram makes the test binary behave as the program, so that tests can kill
// a real process without building another one.
const asProgram = "TEMPORAL_DEV_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// server is one running process of the program.
type server struct {
	process  *os.Process
	exited   chan error
	frontend string
	ui       string
	stderr   *bytes.Buffer
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// start runs the program until its ready line.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := command(t, args...)
	s := &server{exited: make(chan error, 1), stderr: new(bytes.Buffer)}
	cmd.Stderr = s.stderr
	out, in := io.Pipe()
	cmd.Stdout = in
	require.NoError(t, cmd.Start())
	s.process = cmd.Process
	go func() {
		err := cmd.Wait()
		_ = in.Close()
		s.exited <- err
	}()
	t.Cleanup(func() { _ = s.process.Kill() })

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		<-s.exited
		require.NoError(t, err, "no ready line; stderr: %s", s.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	fields := regexp.MustCompile(`^ready frontend=(\S+)(?: ui=unix:(\S+))?\n$`).FindStringSubmatch(line)
	require.NotNil(t, fields, "ready line %q", line)
	s.frontend, s.ui = fields[1], fields[2]
	return s
}

func (s *server) signal(t *testing.T, sig os.Signal) error {
	t.Helper()
	require.NoError(t, s.process.Signal(sig))
	return <-s.exited
}

func (s *server) client(t *testing.T) workflowservice.WorkflowServiceClient {
	t.Helper()
	return s.connect(t, insecure.NewCredentials())
}

// connect returns a client with the given security.
func (s *server) connect(t *testing.T, security credentials.TransportCredentials) workflowservice.WorkflowServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(s.frontend, grpc.WithTransportCredentials(security))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return workflowservice.NewWorkflowServiceClient(conn)
}

func TestStateSurvivesCrashAndCleanStop(t *testing.T) {
	t.Parallel()
	// A directory whose name means something in a URI.
	dir := filepath.Join(t.TempDir(), "state #1?")
	require.NoError(t, os.Mkdir(dir, 0o700))
	dbFile := filepath.Join(dir, "temporal.db")
	args := []string{"--db-file", dbFile, "--port", "0", "--namespace", "bench"}

	// A new file: the namespace is there and keeps closed workflows 30 days.
	first := start(t, args...)
	require.Empty(t, first.ui)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	namespace, err := first.client(t).DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "bench"})
	require.NoError(t, err)
	require.Equal(t, 30*24*time.Hour, namespace.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())

	// What was acknowledged before a kill -9 is there after it.
	started, err := first.client(t).StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:    "bench",
		WorkflowId:   "durable",
		WorkflowType: &commonpb.WorkflowType{Name: "any"},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: "any"},
		RequestId:    "one",
	})
	require.NoError(t, err)
	require.Error(t, first.signal(t, syscall.SIGKILL))

	second := start(t, args...)
	described, err := second.client(t).DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: "bench",
		Execution: &commonpb.WorkflowExecution{WorkflowId: "durable"},
	})
	require.NoError(t, err)
	require.Equal(t, started.GetRunId(), described.GetWorkflowExecutionInfo().GetExecution().GetRunId())

	// A second server on the same file would damage it.
	output, err := command(t, args...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), dbFile+" is in use by another process")

	// SIGTERM is a clean stop, and the namespace is not made anew afterwards.
	require.NoError(t, second.signal(t, syscall.SIGTERM), second.stderr)
	third := start(t, args...)
	again, err := third.client(t).DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "bench"})
	require.NoError(t, err)
	require.Equal(t, namespace.GetNamespaceInfo().GetId(), again.GetNamespaceInfo().GetId())
	require.NoError(t, third.signal(t, os.Interrupt), third.stderr)
}

func TestPortThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	taken := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	dbFile := filepath.Join(t.TempDir(), "t.db")
	output, err := command(t, "--port", taken, "--db-file", dbFile).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "error %v, output %s", err, output)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(output), "frontend port "+taken+" on 127.0.0.1 is taken by another process")
	require.NoFileExists(t, dbFile)
}

func TestDatabaseFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	require.NoError(t, os.WriteFile(foreign, bytes.Repeat([]byte("no database "), 100), 0o600))
	_, err := openDatabase(t.Context(), foreign, "bench")
	require.ErrorContains(t, err, "is not an SQLite database")

	_, err = openDatabase(t.Context(), filepath.Join(t.TempDir(), "absent", "t.db"), "bench")
	require.ErrorContains(t, err, "the directory of database file")

	newer := filepath.Join(t.TempDir(), "newer.db")
	require.NoError(t, prepareSchema(t.Context(), newer))
	setRevision(t, newer, schemaRevision+1)
	_, err = openDatabase(t.Context(), newer, "bench")
	require.ErrorContains(t, err, "schema revision 2")
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		status int
		stdout string
		stderr string
	}{
		{args: []string{"--version"}, stdout: "temporal-dev server 1.32.0 ui 2.54.1\n"},
		{args: []string{"--help"}, stderr: "-db-file"},
		{args: nil, status: 2, stderr: "--db-file is missing"},
		{args: []string{"--db-file", "x", "serve"}, status: 2, stderr: `unexpected argument "serve"`},
		{args: []string{"--db-file", "x", "--port", "70000"}, status: 2, stderr: "--port 70000 is not a port"},
		{args: []string{"--db-file", "x", "--ip", "here"}, status: 2, stderr: `--ip "here" is not an IP address`},
		{args: []string{"--db-file", "x", "--log-level", "loud"}, status: 2, stderr: `--log-level "loud" is not known`},
		{args: []string{"--db-file", "x", "--namespace", ""}, status: 2, stderr: "--namespace is empty"},
		{args: []string{"--db-file", "x", "--tls-cert", "c"}, status: 2, stderr: "--tls-cert and --tls-key belong together"},
		{args: []string{"--db-file", "x", "--tls-client-ca", "c"}, status: 2, stderr: "--tls-client-ca needs --tls-cert"},
		{args: []string{"--db-file", "x", "--api", "http://127.0.0.1:1"}, status: 2, stderr: "--api needs --token-file"},
		{args: []string{"--db-file", "x", "--token-file", "t", "--api", "bench.example.com"}, status: 2, stderr: "is no address"},
		{args: []string{"--db-file", "x", "--token-file", "t", "--api", "http://bench.example.com"}, status: 2, stderr: "tokens would travel in clear"},
		{args: []string{"--db-file", "x", "--ip", "0.0.0.0"}, status: 2, stderr: "other machines could take tasks"},
		{args: []string{"--db-file", "x", "--ip", "0.0.0.0", "--token-file", "t"}, status: 2, stderr: "other machines could take tasks"},
		{args: []string{"--db-file", "x", "--ip", "0.0.0.0", "--tls-cert", "c", "--tls-key", "k"}, status: 2, stderr: "other machines could take tasks"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, test.status, run(test.args, &stdout, &stderr), test.args)
		require.Equal(t, test.stdout, stdout.String(), test.args)
		require.Contains(t, stderr.String(), test.stderr, test.args)
	}
}
