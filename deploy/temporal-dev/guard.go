package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/api"
	"go.temporal.io/server/common/authorization"
)

// guard decides who may call the frontend. It implements Temporal's claim mapper and
// authorizer.
type guard struct {
	callers *callers
	// uiReader and uiAdmin are the tokens of this process's own Web UI, which has already
	// checked its visitors. They never leave the process.
	uiReader, uiAdmin string
}

func newGuard(c *callers) *guard {
	secret := func() string {
		var random [32]byte
		_, _ = rand.Read(random[:]) // never fails
		return hex.EncodeToString(random[:])
	}
	return &guard{callers: c, uiReader: secret(), uiAdmin: secret()}
}

// called names the caller, for the authorizer and for [taskTokens].
type called struct {
	caller
	token string
	err   error // the owner of the token could not be found out
}

// GetClaims says who has sent a call. An error here would hide the reason from the caller, so
// the authorizer gets the error.
func (g *guard) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	scheme, token, _ := strings.Cut(info.AuthToken, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, nil
	}
	who := called{token: token}
	switch {
	case same(token, g.uiAdmin):
		who.caller = caller{kind: admin, name: "the Web UI"}
	case same(token, g.uiReader):
		who.caller = caller{kind: reader, name: "the Web UI"}
	default:
		who.caller, who.err = g.callers.of(context.Background(), token, knownFor)
	}
	return &authorization.Claims{Subject: who.name, Extensions: who}, nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

var allowed = authorization.Result{Decision: authorization.DecisionAllow}

// Authorize decides about one call. A refusal is an error that says why.
func (g *guard) Authorize(ctx context.Context, claims *authorization.Claims, target *authorization.CallTarget) (authorization.Result, error) {
	if authorization.IsHealthCheckAPI(target.APIName) {
		return allowed, nil // whether it serves, and its version
	}
	if claims == nil {
		return authorization.Result{}, refused("a call of Temporal needs a token of Benchloom: send the gRPC header 'authorization: Bearer blm_…', as 'temporal --grpc-meta' does")
	}
	if claims.AuthType == authorization.InternalPrincipalType {
		return allowed, nil // the server's own services, on a connection that only they have
	}
	who, _ := claims.Extensions.(called)
	if who.err != nil {
		return authorization.Result{}, serviceerror.NewUnavailable(who.err.Error())
	}
	err := who.may(target.APIName, target.Request)
	if errors.Is(err, errOtherQueue) {
		// Its task queues may just have changed.
		if again, failed := g.callers.of(ctx, who.token, time.Second); failed == nil {
			err = again.may(target.APIName, target.Request)
		}
	}
	if err != nil {
		return authorization.Result{}, refused(err.Error())
	}
	return allowed, nil
}

func refused(why string) error { return serviceerror.NewPermissionDenied(why, "") }

var (
	errOtherQueue = errors.New("this task queue is not one of the collector's own")
	errUnknown    = errors.New("this token is not known, was revoked or has expired; those of 'benchloom up' are in tokens/ below its state directory")
)

// controlQueue begins the names of the queues on which a worker gets commands of the server.
// The worker draws their last part at random.
const controlQueue = "temporal-sys/worker-commands/"

// may returns why the caller may not make a call; nil if it may.
func (c caller) may(method string, request any) error {
	name := api.MethodName(method)
	switch c.kind {
	case service:
		return nil
	case collector:
		return c.mayCollect(name, request)
	case reader, admin:
		about := api.GetMethodMetadata(method)
		if about.Access == api.AccessReadOnly {
			return nil
		}
		if c.kind == reader {
			return fmt.Errorf("%s may only look at workflows, not call %s; what changes something takes a token of the role admin, or goes through the Benchloom API", c.name, name)
		}
		if forWorkers(name) || strings.HasPrefix(method, api.AdminServicePrefix) || about.Access == api.AccessUnknown {
			return fmt.Errorf("%s is for Benchloom's own processes, not for people", name)
		}
		return nil
	case stranger:
	}
	return errUnknown
}

// forWorkers reports whether only workers call a method, to take a task or to answer one.
func forWorkers(name string) bool {
	switch name {
	case "PollWorkflowTaskQueue", "PollActivityTaskQueue", "PollNexusTaskQueue", "ShutdownWorker", "RecordWorkerHeartbeat", "ResetStickyTaskQueue":
		return true
	}
	return strings.HasPrefix(name, "Respond") || strings.HasPrefix(name, "RecordActivityTaskHeartbeat")
}

// mayCollect is [caller.may] for a collector. [taskTokens] checks the collector's answers.
func (c caller) mayCollect(name string, request any) error {
	switch name {
	case "DescribeNamespace", "GetClusterInfo", "RecordWorkerHeartbeat",
		"RecordActivityTaskHeartbeat", "RespondActivityTaskCompleted", "RespondActivityTaskFailed", "RespondActivityTaskCanceled",
		"RespondNexusTaskCompleted", "RespondNexusTaskFailed":
		return nil
	case "PollActivityTaskQueue":
		poll, _ := request.(*workflowservice.PollActivityTaskQueueRequest)
		if queue := poll.GetTaskQueue().GetName(); !slices.Contains(c.queues, queue) {
			return fmt.Errorf("%w: collector %s may not poll %.200q", errOtherQueue, c.name, queue)
		}
		return nil
	case "PollNexusTaskQueue":
		poll, _ := request.(*workflowservice.PollNexusTaskQueueRequest)
		if !strings.HasPrefix(poll.GetTaskQueue().GetName(), controlQueue) {
			return fmt.Errorf("collector %s may not poll %.200q", c.name, poll.GetTaskQueue().GetName())
		}
		return nil
	case "ShutdownWorker":
		// It names its worker by a key that nobody else knows. Sticky queues are the
		// orchestrators'.
		if stop, _ := request.(*workflowservice.ShutdownWorkerRequest); stop.GetStickyTaskQueue() != "" {
			return fmt.Errorf("collector %s has no workflows", c.name)
		}
		return nil
	}
	return fmt.Errorf("a collector may not call %s", name)
}
