package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/starter"
)

// temporalFlags say how the API and orchestrators connect to Temporal, in addition to Temporal's
// own environment configuration.
type temporalFlags struct {
	namespace, temporalToken string
}

func (f *temporalFlags) addTemporal(flags *pflag.FlagSet) {
	flags.StringVar(&f.namespace, "namespace", env("TEMPORAL_NAMESPACE", starter.DefaultNamespace), "Temporal namespace")
	flags.StringVar(&f.temporalToken, "temporal-token-file", "", "file with the token of API and orchestrators for a Temporal that asks the API whose tokens others have ('temporal-dev --token-file')")
}

// dial connects to Temporal; role names the process there.
func (f *temporalFlags) dial(ctx context.Context, role string, m *metrics.Metrics, log *slog.Logger) (client.Client, error) {
	connection := starter.Connection{Namespace: f.namespace, Identity: identity(role), Log: log, Metrics: m.SDK}
	if f.temporalToken != "" {
		token, err := secret(f.temporalToken, "")
		if err != nil {
			return nil, fmt.Errorf("--temporal-token-file: %w", err)
		}
		connection.Token = token
	}
	temporal, err := starter.Dial(ctx, connection)
	if err != nil {
		return nil, &exitError{exitUnreached, err}
	}
	return temporal, nil
}
