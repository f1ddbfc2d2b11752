package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// taskTokens binds tasks to the collectors that got them. Temporal identifies an answered task
// by its task token alone, which can be put together from data that readers see. So the token
// that a collector gets is sealed with its name, and no answer of a collector passes without
// its own seal.
type taskTokens struct{ key []byte }

// newTaskTokens derives the key from the secret of Benchloom's own processes: seals outlive
// a restart of the server.
func newTaskTokens(secret []byte) taskTokens {
	derived := hmac.New(sha256.New, secret)
	derived.Write([]byte("benchloom task tokens"))
	return taskTokens{key: derived.Sum(nil)}
}

// sealField is the number of the field that holds the seal. Task tokens are messages of
// protobuf, so the server skips it.
const sealField = 4711

// sealHead precedes the seal's bytes.
var sealHead = protowire.AppendVarint(protowire.AppendTag(nil, sealField, protowire.BytesType), sha256.Size)

func (t taskTokens) mac(name string, token []byte) []byte {
	mac := hmac.New(sha256.New, t.key)
	fmt.Fprintf(mac, "%d:%s", len(name), name)
	mac.Write(token)
	return mac.Sum(nil)
}

// seal returns a task token that only the named collector may answer with.
func (t taskTokens) seal(name string, token []byte) []byte {
	return append(append(bytes.Clone(token), sealHead...), t.mac(name, token)...)
}

// sealed reports whether a task token has the seal of the named collector.
func (t taskTokens) sealed(name string, token []byte) bool {
	head := len(token) - len(sealHead) - sha256.Size
	if head < 0 || !bytes.Equal(token[head:len(token)-sha256.Size], sealHead) {
		return false
	}
	return hmac.Equal(token[len(token)-sha256.Size:], t.mac(name, token[:head]))
}

// intercept seals the tokens that collectors get and checks those that they answer with,
// after the authorizer.
func (t taskTokens) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	claims, _ := ctx.Value(authorization.MappedClaims).(*authorization.Claims)
	if claims == nil {
		return handle(ctx, request)
	}
	who, _ := claims.Extensions.(called)
	if who.kind != collector {
		return handle(ctx, request)
	}
	if answer, ok := request.(interface{ GetTaskToken() []byte }); ok && !t.sealed(who.name, answer.GetTaskToken()) {
		return nil, refused("collector " + who.name + " may only answer tasks that it got")
	}
	answer, err := handle(ctx, request)
	switch task := answer.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		if len(task.GetTaskToken()) > 0 {
			task.TaskToken = t.seal(who.name, task.GetTaskToken())
		}
	case *workflowservice.PollNexusTaskQueueResponse:
		if len(task.GetTaskToken()) > 0 {
			task.TaskToken = t.seal(who.name, task.GetTaskToken())
		}
	}
	return answer, err
}
