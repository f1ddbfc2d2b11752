package collection_test

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

func (starter) SettleRequest(context.Context, bench.RequestRef) error  { return nil }
func (starter) RestartRequest(context.Context, bench.RequestRef) error { return nil }
func (starter) QueueChanged(context.Context, string) error             { return nil }
func (starter) TriggerReconcile(context.Context) error                 { return nil }
func (starter) TriggerRetain(context.Context) error                    { return nil }
