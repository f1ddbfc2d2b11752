package main

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

func (noWorkflows) SettleRequest(context.Context, bench.RequestRef) error { return nil }
