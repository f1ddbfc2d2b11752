package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc"
)

// settings are the server's dynamic configuration. Search attributes are read past the caches for
// a while after a change, so that each can be used as soon as it was added. If that were
// permanent, each start of a workflow would read its namespace from the database several times.
type settings struct {
	dynamicconfig.StaticClient
	now       func() time.Time
	freshTill atomic.Int64 // nanoseconds since 1970
}

// attributesSettle is longer than any cache keeps search attributes: namespaces are read again every
// two seconds.
const attributesSettle = 10 * time.Second

func newSettings(now func() time.Time) *settings {
	return &settings{StaticClient: dynamicConfig(), now: now}
}

// Values of a setting are compared by their addresses.
var fresh, cached = []dynamicconfig.ConstrainedValue{{Value: true}}, []dynamicconfig.ConstrainedValue{{Value: false}}

// GetValue implements [dynamicconfig.Client].
func (s *settings) GetValue(key dynamicconfig.Key) []dynamicconfig.ConstrainedValue {
	if key != dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key() {
		return s.StaticClient.GetValue(key)
	}
	if s.now().UnixNano() < s.freshTill.Load() {
		return fresh
	}
	return cached
}

// intercept notices calls that change namespaces or search attributes.
func (s *settings) intercept(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if !changesAttributes(call.FullMethod) {
		return handle(ctx, request)
	}
	defer s.changed() // meanwhile others may have read the former ones
	return handle(ctx, request)
}

func (s *settings) changed() { s.freshTill.Store(s.now().Add(attributesSettle).UnixNano()) }

func changesAttributes(method string) bool {
	switch method[strings.LastIndexByte(method, '/')+1:] {
	case "AddSearchAttributes", "RemoveSearchAttributes", "RegisterNamespace", "UpdateNamespace", "DeleteNamespace":
		return true
	}
	return false
}
