package main

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

func (noWorkflows) SettleRequest(context.Context, string, bench.RequestID) error { return nil }
