package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc"
)

// Search attributes are read past the caches until all of these have seen a change.
func TestChangedSearchAttributesAreReadFreshForAWhile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s := newSettings(func() time.Time { return now })
	isFresh := func() bool {
		values := s.GetValue(dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key())
		require.Len(t, values, 1)
		return values[0].Value.(bool)
	}
	call := func(method string) {
		_, err := s.intercept(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil })
		require.NoError(t, err)
	}
	require.False(t, isFresh())
	call("/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution")
	require.False(t, isFresh())
	for _, method := range []string{
		"/temporal.api.operatorservice.v1.OperatorService/AddSearchAttributes", "/temporal.api.workflowservice.v1.WorkflowService/RegisterNamespace",
	} {
		call(method)
		require.True(t, isFresh())
		now = now.Add(attributesSettle - 1)
		require.True(t, isFresh())
		now = now.Add(1)
		require.False(t, isFresh())
	}
	require.Equal(t, true, s.GetValue(dynamicconfig.MatchingEnableFairness.Key())[0].Value, "other settings are as they were")
}
