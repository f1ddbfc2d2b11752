package main

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

func (noWorkflows) SettleRequest(context.Context, string, bench.RequestID) error  { return nil }
func (noWorkflows) RestartRequest(context.Context, string, bench.RequestID) error { return nil }
func (noWorkflows) QueueChanged(context.Context, string) error                    { return nil }
func (noWorkflows) TriggerReconcile(context.Context) error                        { return nil }
