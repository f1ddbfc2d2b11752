//go:build linux

package threehosts_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// asProbe makes the test binary a client: its value is the probe. A client is a process of its
// own because a namespace belongs to threads, and its goroutines run on any of them.
const asProbe = "THREEHOSTS_PROBE"

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(asProbe)
	if !ok {
		os.Exit(m.Run())
	}
	var p probe
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	fmt.Print(p.outcome(ctx))
}

// probe is one call that somebody makes from a host.
type probe struct {
	// Call is a method of HTTP, or one of temporalCalls.
	Call string
	// To is an address, or a task queue.
	To string
	// CA is the file of the authority that the caller trusts; empty: it calls in clear.
	CA string
	// Certificate is the directory of the caller's certificate; empty: it has none.
	Certificate string
	// Token is the caller's; empty: none.
	Token string
}

// try makes a call from the host. It returns the status and the body, or the error.
func (h *host) try(t *testing.T, p probe) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	c := h.command(root, self)
	c.Env = append(slices.Clip(c.Env), asProbe+"="+string(text))
	out, err := c.Output()
	require.NoError(t, err, "%+v: %s", p, out)
	return string(out)
}

// awaitOutcome repeats a call until its outcome contains a text.
func (h *host) awaitOutcome(t *testing.T, p probe, wanted string) {
	t.Helper()
	for until := time.Now().Add(patience); ; {
		outcome := h.try(t, p)
		if strings.Contains(outcome, wanted) {
			return
		}
		require.True(t, time.Now().Before(until), "%s %s: %q does not come, but %s", p.Call, p.To, wanted, outcome)
		time.Sleep(100 * time.Millisecond)
	}
}

func (p probe) outcome(ctx context.Context) string {
	var config *tls.Config
	if p.CA != "" {
		text, err := os.ReadFile(p.CA)
		if err != nil {
			return err.Error()
		}
		config = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM(text)
	}
	if p.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(certFile(p.Certificate), keyFile(p.Certificate))
		if err != nil {
			return err.Error()
		}
		// It is sent even to a server that names other authorities.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	if call, ok := temporalCalls[p.Call]; ok {
		return p.temporal(ctx, config, call)
	}
	return p.https(ctx, config)
}

func (p probe) https(ctx context.Context, config *tls.Config) string {
	var body io.Reader
	if p.Call != http.MethodGet {
		body = strings.NewReader("{}")
	}
	request, err := http.NewRequestWithContext(ctx, p.Call, p.To, body)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token)
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprintln(answer.Status, string(text), err)
}

func (p probe) temporal(ctx context.Context, config *tls.Config, call func(context.Context, workflowservice.WorkflowServiceClient, string) error) string {
	security := insecure.NewCredentials()
	if config != nil {
		security = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(hub+":7233", grpc.WithTransportCredentials(security))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	if p.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.Token)
	}
	err = call(ctx, workflowservice.NewWorkflowServiceClient(conn), p.To)
	return status.Code(err).String() + " " + status.Convert(err).Message()
}

const namespace = "benchloom"

var noWorkflow = &commonpb.WorkflowExecution{WorkflowId: "there-is-no-such-workflow"}

// temporalCalls are calls of Temporal, by what they are for.
var temporalCalls = map[string]func(ctx context.Context, c workflowservice.WorkflowServiceClient, queue string) error{
	"ask whether it serves": func(ctx context.Context, c workflowservice.WorkflowServiceClient, _ string) error {
		_, err := c.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	},
	"look": func(ctx context.Context, c workflowservice.WorkflowServiceClient, _ string) error {
		_, err := c.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace})
		return err
	},
	"terminate": func(ctx context.Context, c workflowservice.WorkflowServiceClient, _ string) error {
		_, err := c.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{Namespace: namespace, WorkflowExecution: noWorkflow})
		return err
	},
	"signal": func(ctx context.Context, c workflowservice.WorkflowServiceClient, _ string) error {
		_, err := c.SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{Namespace: namespace, WorkflowExecution: noWorkflow, SignalName: "any"})
		return err
	},
	"start": func(ctx context.Context, c workflowservice.WorkflowServiceClient, queue string) error {
		_, err := c.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
			Namespace: namespace, WorkflowId: "of-a-stranger", WorkflowType: &commonpb.WorkflowType{Name: "Job"}, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, RequestId: "one",
		})
		return err
	},
	"poll": func(ctx context.Context, c workflowservice.WorkflowServiceClient, queue string) error {
		_, err := c.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}})
		return err
	},
	"poll for workflows": func(ctx context.Context, c workflowservice.WorkflowServiceClient, queue string) error {
		_, err := c.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}})
		return err
	},
	"answer a task": func(ctx context.Context, c workflowservice.WorkflowServiceClient, _ string) error {
		_, err := c.RespondActivityTaskCompletedById(ctx, &workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: namespace, WorkflowId: noWorkflow.GetWorkflowId(), ActivityId: "1"})
		return err
	},
}
