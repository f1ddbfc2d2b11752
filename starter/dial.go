package starter

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
)

// DefaultNamespace is used when the environment names none.
const DefaultNamespace = "benchloom"

// Connection describes how a process connects to Temporal.
type Connection struct {
	// Address overrides the environment's unless it is empty.
	Address   string
	Namespace string
	Identity  string
	Log       *slog.Logger
	Metrics   client.MetricsHandler
	// GRPC adds to the options of the connection.
	GRPC []grpc.DialOption
}

// Dial connects to Temporal with its usual environment configuration
// (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, TLS and API keys). It
// keeps trying until the context ends.
func Dial(ctx context.Context, c Connection) (client.Client, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, fmt.Errorf("reading Temporal's environment configuration: %w", err)
	}
	if c.Address != "" {
		options.HostPort = c.Address
	}
	if c.Namespace != "" {
		options.Namespace = c.Namespace
	}
	if options.Namespace == "" {
		options.Namespace = DefaultNamespace
	}
	options.Identity = c.Identity
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, c.GRPC...)
	options.MetricsHandler = c.Metrics
	options.Logger = sdklog.NewStructuredLogger(c.Log)
	for {
		connected, err := client.DialContext(ctx, options)
		if err == nil {
			return connected, nil
		}
		c.Log.WarnContext(ctx, "Temporal is not reachable yet", "address", options.HostPort, "error", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot reach Temporal at %s, namespace %s: %w; is it running? set TEMPORAL_ADDRESS, or start everything with 'benchloom up'", options.HostPort, options.Namespace, err)
		case <-time.After(time.Second):
		}
	}
}
