//go:build linux || darwin

package devstack_test

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/devstack/devstacktest"
)

func namespace(attributes devstack.SearchAttributes) devstack.Namespace {
	return devstack.Namespace{Name: "bench", Attributes: attributes}
}

func dial(t *testing.T, temporal *devstack.Temporal, name string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: temporal.Address(), Namespace: name, Logger: sdklog.NewStructuredLogger(discard())})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func attributesOf(t *testing.T, c client.Client, name string) devstack.SearchAttributes {
	t.Helper()
	list, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: name})
	require.NoError(t, err)
	return list.GetCustomAttributes()
}

func retentionOf(t *testing.T, c client.Client, name string) time.Duration {
	t.Helper()
	found, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: name})
	require.NoError(t, err)
	return found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
}

func TestStackOfPostgresAndTemporal(t *testing.T) {
	t.Parallel()
	program := devstacktest.Program(t)
	dir := filepath.Join(t.TempDir(), "state")
	attributes := devstack.SearchAttributes{
		"Project": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"PR":      enumspb.INDEXED_VALUE_TYPE_INT,
	}
	start := func(attributes devstack.SearchAttributes) (*running, *devstack.Temporal, *devstack.State) {
		state := openState(t, dir)
		temporal, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: program, UI: true, Namespace: namespace(attributes)})
		require.NoError(t, err)
		began := time.Now()
		r := run(t, devstack.Config{State: state}, newPostgres(t, state).Process(), temporal.Process())
		r.awaitReady(t)
		t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
		return r, temporal, state
	}

	// The first start creates everything.
	r, temporal, state := start(attributes)
	c := dial(t, temporal, "bench")
	require.Equal(t, attributes, attributesOf(t, c, "bench"))
	require.Equal(t, devstack.DefaultRetention, retentionOf(t, c, "bench"))
	conn, err := net.Dial("unix", temporal.UISocket())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	r.stop(t)
	require.NoError(t, state.Close())

	// A later version brings more attributes to the same state directory.
	more := maps.Clone(attributes)
	more["Artifacts"] = enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST
	r, temporal, state = start(more)
	require.Equal(t, more, attributesOf(t, dial(t, temporal, "bench"), "bench"))
	r.Hurry()
	r.stop(t)
	require.NoError(t, state.Close())

	// An attribute of another type is for people to solve, not for restarts.
	more["PR"] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	state = openState(t, dir)
	temporal, err = devstack.NewTemporal(state, devstack.TemporalConfig{Program: program, Namespace: namespace(more)})
	require.NoError(t, err)
	r = run(t, devstack.Config{State: state}, temporal.Process())
	r.Hurry() // how it stops is not the point
	var mismatch *devstack.AttributeTypeError
	require.ErrorAs(t, <-r.result, &mismatch)
	require.Equal(t, devstack.AttributeTypeError{
		Namespace: "bench", Attribute: "PR",
		Has: enumspb.INDEXED_VALUE_TYPE_INT, Want: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}, *mismatch)
	require.Zero(t, r.Status()[0].Restarts)
}

func TestEnsureNamespaceOnACluster(t *testing.T) {
	t.Parallel()
	state := openState(t, t.TempDir())
	temporal, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: devstacktest.Program(t), Namespace: namespace(nil)})
	require.NoError(t, err)
	r := run(t, devstack.Config{State: state}, temporal.Process())
	r.awaitReady(t)
	require.Empty(t, temporal.UISocket())
	c := dial(t, temporal, "other")

	// A namespace that the cluster does not have yet, and again.
	want := devstack.Namespace{
		Name:       "other",
		Retention:  48 * time.Hour,
		Attributes: devstack.SearchAttributes{"State": enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	}
	for range 2 {
		require.NoError(t, devstack.EnsureNamespace(t.Context(), c, want))
		require.Equal(t, want.Attributes, attributesOf(t, c, "other"))
		require.Equal(t, want.Retention, retentionOf(t, c, "other"))
	}
	// What it returned for can be used.
	_, err = c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: "other", Query: "State = 'waiting'"})
	require.NoError(t, err)

	// A retention is raised, never lowered.
	want.Retention = 0 // the default
	require.NoError(t, devstack.EnsureNamespace(t.Context(), c, want))
	require.Equal(t, devstack.DefaultRetention, retentionOf(t, c, "other"))
	want.Retention = time.Hour
	require.NoError(t, devstack.EnsureNamespace(t.Context(), c, want))
	require.Equal(t, devstack.DefaultRetention, retentionOf(t, c, "other"))
	r.Hurry()
	r.stop(t)
}

func TestTemporalThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	state := openState(t, t.TempDir())
	for _, program := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		_, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: program, Namespace: namespace(nil)})
		require.ErrorContains(t, err, `run "make bin/temporal-dev"`)
	}
	_, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: os.Args[0]})
	require.ErrorContains(t, err, "the namespace has no name")

	// A port that another process has is named, and that process is not taken
	// for the server.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	taken := listener.Addr().(*net.TCPAddr)
	temporal, err := devstack.NewTemporal(state, devstack.TemporalConfig{Port: taken.Port, Program: devstacktest.Program(t), Namespace: namespace(nil)})
	require.NoError(t, err)
	process := temporal.Process()
	process.Ready = func(context.Context) error { return nil } // somebody answers
	r := run(t, devstack.Config{State: state}, process)
	var failure *devstack.PortTakenError
	require.ErrorAs(t, <-r.result, &failure)
	require.Equal(t, devstack.PortTakenError{What: "Temporal", Address: taken.String()}, *failure)
}

// temporal-dev is a program of its own, and may be older or newer than benchloom.
func TestATemporalThatDoesNotMatchIsNamed(t *testing.T) {
	t.Parallel()
	for program, reason := range map[string]string{
		"temporal-dev-of-an-earlier-version": "does not match this benchloom, it does not know --token-file, --ui-socket: ",
		"something-else":                     "does not match this benchloom, it does not know --db-file, --ip, --namespace, --port, --token-file, --ui-socket: ",
		"unwilling":                          "exit status 2",
		"no-program":                         "permission denied",
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			token := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(token, []byte("blm_of-the-service"), 0o600))
			state := openState(t, filepath.Join(t.TempDir(), "state"))
			temporal, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: filepath.Join("testdata", program), UI: true, TokenFile: token, Namespace: namespace(nil)})
			require.NoError(t, err)
			r := run(t, devstack.Config{State: state}, temporal.Process())
			err = <-r.result
			require.ErrorContains(t, err, "testdata/"+program)
			require.ErrorContains(t, err, reason)
			require.ErrorContains(t, err, `run "make build", or set BENCHLOOM_TEMPORAL_DEV`)
			require.Zero(t, r.Status()[0].Restarts, "it is not tried again")
		})
	}
}
