package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Tokens of the tests.
const (
	ownToken    = "blm_the-token-of-api-and-orchestrator"
	oneToken    = "blm_collector-one"
	otherToken  = "blm_collector-two"
	readerToken = "blm_reader"
	adminToken  = "blm_admin"
	sharedToken = "blm_shared-by-collectors"
	// someToken belongs to an admin of one project.
	someToken = "blm_some"
)

// benchloom is an API that knows some tokens.
type benchloom struct {
	*httptest.Server
	mu    sync.Mutex
	known map[string]map[string]any
	away  atomic.Bool
	asked atomic.Int64
}

func startBenchloom(t *testing.T) *benchloom {
	t.Helper()
	b := &benchloom{known: map[string]map[string]any{
		oneToken:    {"role": "collector", "collector": "one", "task_queues": []string{"bench/x/1/one"}},
		otherToken:  {"role": "collector", "collector": "two", "task_queues": []string{"bench/x/1/two"}},
		readerToken: {"role": "writer", "principal": "wanda"},
		adminToken:  {"role": "admin", "principal": "ada"},
		someToken:   {"role": "admin", "principal": "sam", "project": "go"},
		sharedToken: {"role": "collector", "principal": "collectors"},
	}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		if b.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		info, ok := b.known[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !ok || r.URL.Path != "/api/v1/info" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(info)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *benchloom) set(token string, info map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if info == nil {
		delete(b.known, token)
	} else {
		b.known[token] = info
	}
}

func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(ownToken+"\n"), 0o600))
	return path
}

// as returns a context whose calls carry a token.
func as(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestCallsNeedAToken(t *testing.T) {
	t.Parallel()
	api := startBenchloom(t)
	s := start(t, "--db-file", filepath.Join(t.TempDir(), "t.db"), "--port", "0", "--namespace", "bench", "--token-file", tokenFile(t), "--api", api.URL)
	client := s.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	const (
		nobody   = ""
		invented = "blm_invented"
	)
	start := &workflowservice.StartWorkflowExecutionRequest{
		Namespace: "bench", WorkflowId: "w", WorkflowType: &commonpb.WorkflowType{Name: "any"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "orchestrator"}, RequestId: "one",
	}
	calls := map[string]struct {
		call func(context.Context) error
		may  []string
	}{
		"look": {
			func(ctx context.Context) error {
				_, err := client.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "bench"})
				return err
			}, []string{ownToken, readerToken, someToken, adminToken},
		},
		"the namespace": {
			func(ctx context.Context) error {
				_, err := client.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "bench"})
				return err
			}, []string{ownToken, readerToken, someToken, adminToken, oneToken, otherToken},
		},
		"start": {
			func(ctx context.Context) error {
				_, err := client.StartWorkflowExecution(ctx, start)
				return err
			}, []string{ownToken, adminToken},
		},
		"terminate": {
			func(ctx context.Context) error {
				_, err := client.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{Namespace: "bench", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "none"}})
				return err
			}, []string{ownToken, adminToken},
		},
		"configure the namespace": {
			func(ctx context.Context) error {
				_, err := client.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{Namespace: "bench", UpdateInfo: &namespacepb.UpdateNamespaceInfo{Description: "x"}})
				return err
			}, []string{ownToken, adminToken},
		},
		"poll for workflows": {
			func(ctx context.Context) error {
				_, err := client.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: "bench", TaskQueue: &taskqueuepb.TaskQueue{Name: "empty"}})
				return err
			}, []string{ownToken},
		},
		"poll the queue of collector one": {
			func(ctx context.Context) error {
				_, err := client.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{Namespace: "bench", TaskQueue: &taskqueuepb.TaskQueue{Name: "bench/x/1/one"}})
				return err
			}, []string{ownToken, oneToken},
		},
		"answer by names": {
			func(ctx context.Context) error {
				_, err := client.RespondActivityTaskCompletedById(ctx, &workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: "bench", WorkflowId: "w", ActivityId: "1"})
				return err
			}, []string{ownToken},
		},
		"commands to one's worker": {
			func(ctx context.Context) error {
				_, err := client.PollNexusTaskQueue(ctx, &workflowservice.PollNexusTaskQueueRequest{Namespace: "bench", TaskQueue: &taskqueuepb.TaskQueue{Name: controlQueue + "bench/key"}})
				return err
			}, []string{ownToken, oneToken, otherToken},
		},
		"stop one's worker": {
			func(ctx context.Context) error {
				_, err := client.ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{Namespace: "bench", TaskQueue: "bench/x/1/one", WorkerInstanceKey: "key", TaskQueueTypes: []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_ACTIVITY}})
				return err
			}, []string{ownToken, oneToken, otherToken},
		},
		"take an orchestrator's sticky queue away": {
			func(ctx context.Context) error {
				_, err := client.ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{Namespace: "bench", StickyTaskQueue: "sticky"})
				return err
			}, []string{ownToken},
		},
	}
	var running sync.WaitGroup
	for name, c := range calls {
		for _, token := range []string{nobody, invented, sharedToken, oneToken, otherToken, readerToken, someToken, adminToken, ownToken} {
			running.Go(func() {
				// A poll that is let in waits.
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				may := false
				for _, m := range c.may {
					may = may || m == token
				}
				err := c.call(as(ctx, token))
				if got := status.Code(err) != codes.PermissionDenied; got != may {
					t.Errorf("%s with token %q: %v", name, token, err)
				}
				if !may && status.Convert(err).Message() == "Request unauthorized." {
					t.Errorf("%s with token %q: the refusal gives no reason", name, token)
				}
			})
		}
	}
	running.Wait()
	// Whether it serves is no secret.
	_, err := client.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	require.NoError(t, err)
	// The token is sent as a Bearer token only.
	_, err = client.DescribeNamespace(metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+ownToken), &workflowservice.DescribeNamespaceRequest{Namespace: "bench"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
}

func TestOnlyTheCollectorThatGotATaskMayAnswerIt(t *testing.T) {
	t.Parallel()
	api := startBenchloom(t)
	file := tokenFile(t)
	args := []string{"--db-file", filepath.Join(t.TempDir(), "t.db"), "--port", "0", "--namespace", "bench", "--token-file", file, "--api", api.URL}
	s := start(t, args...)
	client := s.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := client.StartActivityExecution(as(ctx, ownToken), &workflowservice.StartActivityExecutionRequest{
		Namespace: "bench", ActivityId: "job", ActivityType: &commonpb.ActivityType{Name: "RunJob"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "bench/x/1/one"}, RequestId: "one",
		StartToCloseTimeout: durationpb.New(time.Minute),
	})
	require.NoError(t, err)
	var token []byte
	for len(token) == 0 {
		task, err := client.PollActivityTaskQueue(as(ctx, oneToken), &workflowservice.PollActivityTaskQueueRequest{Namespace: "bench", TaskQueue: &taskqueuepb.TaskQueue{Name: "bench/x/1/one"}})
		require.NoError(t, err)
		token = task.GetTaskToken()
	}
	beat := func(client workflowservice.WorkflowServiceClient, as context.Context, token []byte) codes.Code {
		_, err := client.RecordActivityTaskHeartbeat(as, &workflowservice.RecordActivityTaskHeartbeatRequest{Namespace: "bench", TaskToken: token})
		return status.Code(err)
	}
	bare := token[:len(token)-len(sealHead)-32]
	require.Equal(t, codes.OK, beat(client, as(ctx, oneToken), token))
	require.Equal(t, codes.PermissionDenied, beat(client, as(ctx, otherToken), token))
	require.Equal(t, codes.PermissionDenied, beat(client, as(ctx, oneToken), bare))
	require.Equal(t, codes.PermissionDenied, beat(client, as(ctx, otherToken), bare))
	require.Equal(t, codes.PermissionDenied, beat(client, as(ctx, adminToken), token))
	require.Equal(t, codes.OK, beat(client, as(ctx, ownToken), bare))
	_, err = client.RespondActivityTaskCompleted(as(ctx, otherToken), &workflowservice.RespondActivityTaskCompletedRequest{Namespace: "bench", TaskToken: token})
	require.Equal(t, codes.PermissionDenied, status.Code(err))

	// The seal outlives a restart of the server.
	require.Error(t, s.signal(t, os.Kill))
	client = start(t, args...).client(t)
	require.Equal(t, codes.OK, beat(client, as(ctx, oneToken), token))
	_, err = client.RespondActivityTaskCompleted(as(ctx, oneToken), &workflowservice.RespondActivityTaskCompletedRequest{Namespace: "bench", TaskToken: token})
	require.NoError(t, err)
}

func TestSeals(t *testing.T) {
	t.Parallel()
	tokens, others := newTaskTokens([]byte("secret")), newTaskTokens([]byte("another"))
	task := []byte("task")
	sealed := tokens.seal("one", task)
	require.True(t, tokens.sealed("one", sealed))
	for name, bad := range map[string][]byte{"none": task, "empty": nil, "cut": sealed[:len(sealed)-1], "of another server": others.seal("one", task), "of another collector": tokens.seal("two", task), "of another task": append([]byte("x"), sealed...), "doubled": append(append([]byte{}, sealed...), sealed[len(task):]...)} {
		require.False(t, tokens.sealed("one", bad), name)
	}
}

func TestTokensAreAskedAboutAgain(t *testing.T) {
	t.Parallel()
	api := startBenchloom(t)
	c, _, err := newCallers(tokenFile(t), api.URL, "")
	require.NoError(t, err)
	now := time.Now()
	c.now = func() time.Time { return now }
	kind := func(token string) callerKind {
		who, err := c.of(t.Context(), token, knownFor)
		require.NoError(t, err)
		return who.kind
	}
	require.Equal(t, service, kind(ownToken))
	require.Equal(t, stranger, kind("something else"))
	require.Zero(t, api.asked.Load())
	require.Equal(t, admin, kind(adminToken))
	require.Equal(t, admin, kind(adminToken))
	require.EqualValues(t, 1, api.asked.Load())

	// An API that is away changes nothing for whom it has known, however long; of others
	// nothing is known.
	api.away.Store(true)
	for range 5 {
		now = now.Add(time.Hour)
		require.Equal(t, admin, kind(adminToken))
	}
	_, err = c.of(t.Context(), readerToken, knownFor)
	require.ErrorIs(t, err, errAPIAway)
	api.away.Store(false)
	now = now.Add(askAgain)
	require.Equal(t, reader, kind(readerToken))

	// A token that is revoked ends within a minute, with the 10 s of the API itself and the
	// longest poll.
	api.set(adminToken, nil)
	now = now.Add(knownFor)
	require.Equal(t, stranger, kind(adminToken))
	longest, _ := dynamicConfig()[dynamicconfig.MatchingLongPollExpirationInterval.Key()].(time.Duration)
	require.Positive(t, longest)
	require.Less(t, knownFor+10*time.Second+longest, time.Minute)

	// A collector whose queues have just changed need not wait.
	who, err := c.of(t.Context(), oneToken, knownFor)
	require.NoError(t, err)
	require.Equal(t, []string{"bench/x/1/one"}, who.queues)
	api.set(oneToken, map[string]any{"collector": "one", "task_queues": []string{"bench/x/1/set"}})
	now = now.Add(2 * time.Second)
	who, err = c.of(t.Context(), oneToken, time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"bench/x/1/set"}, who.queues)
}

func TestInventedTokensFillNoMemory(t *testing.T) {
	t.Parallel()
	c, _, err := newCallers(tokenFile(t), "http://127.0.0.1:1", "")
	require.NoError(t, err)
	for i := range maxCallers + 10 {
		var hash [32]byte
		hash[0], hash[1], hash[2] = byte(i), byte(i>>8), byte(i>>16)
		c.remember(hash, knownCaller{until: c.now().Add(time.Hour)})
	}
	require.LessOrEqual(t, len(c.known), maxCallers)
}

func TestWebUIFollowsTheRoleOfItsVisitor(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ui")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	s := start(t, "--db-file", filepath.Join(t.TempDir(), "t.db"), "--port", "0", "--ui-socket", socket, "--token-file", tokenFile(t))
	require.Equal(t, socket, s.ui)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(role, method, path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://ui"+path, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set(roleHeader, role)
		request.Header.Set("Authorization", "Bearer blm_whatever")
		reply, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = reply.Body.Close() }()
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(body)
	}
	const terminate = "/api/v1/namespaces/benchloom/workflows/none/terminate"
	for _, role := range []string{"", "reader", "writer", "admin"} {
		code, page := ask(role, http.MethodGet, "/")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, page, "<html")
		code, text := ask(role, http.MethodGet, "/api/v1/namespaces/benchloom")
		require.Equal(t, http.StatusOK, code, text)
		require.Contains(t, text, `"benchloom"`)
		code, text = ask(role, http.MethodPost, terminate)
		if role == "admin" {
			require.Equal(t, http.StatusNotFound, code, text) // there is no such workflow
		} else {
			require.Equal(t, http.StatusMethodNotAllowed, code, text)
		}
	}
}
