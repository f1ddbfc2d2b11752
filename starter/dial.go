package starter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/benchloom/benchloom/internal/webguard"
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
	// Token is sent with every call, for a Temporal that asks Benchloom who may do what;
	// empty: none. Credentials of the environment (TEMPORAL_API_KEY, or
	// TEMPORAL_GRPC_META_AUTHORIZATION) take its place.
	Token string
}

// Dial connects to Temporal with its usual environment configuration
// (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, TLS and API keys). It
// keeps trying until the context ends. It refuses to send a token to another machine in
// clear.
func Dial(ctx context.Context, c Connection) (client.Client, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
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

// options returns the options of every process's client.
func (c Connection) options() (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("reading Temporal's environment configuration: %w", err)
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
	if webguard.Loopback(hostOf(options.HostPort)) {
		// Compressing takes longer than copying, on a machine that is measuring something.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	options.MetricsHandler = c.Metrics
	options.Logger = sdklog.NewStructuredLogger(c.Log)
	if c.Token == "" || options.Credentials != nil {
		return options, nil
	}
	encrypted := options.ConnectionOptions.TLS != nil && !options.ConnectionOptions.TLSDisabled
	if !encrypted && !webguard.Loopback(hostOf(options.HostPort)) {
		return options, fmt.Errorf("Temporal at %s would get its token in clear: encrypt the connection with TEMPORAL_TLS=true, and TEMPORAL_TLS_SERVER_CA_CERT_PATH for an authority of your own", options.HostPort)
	}
	options.HeadersProvider = bearer{token: c.Token, others: options.HeadersProvider}
	return options, nil
}

// hostOf returns the host of an address; Temporal's default is on loopback.
func hostOf(address string) string {
	if address == "" {
		return "localhost"
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(address, "dns:///"))
	if err != nil {
		return address
	}
	return host
}

// headersProvider is the SDK's interface of this name, which it does not export.
type headersProvider interface {
	GetHeaders(ctx context.Context) (map[string]string, error)
}

// bearer adds a token to the headers of the environment, unless they have one.
type bearer struct {
	token  string
	others headersProvider // may be nil
}

// GetHeaders is called for each call.
func (b bearer) GetHeaders(ctx context.Context) (map[string]string, error) {
	headers := map[string]string{authorization: "Bearer " + b.token}
	if b.others == nil {
		return headers, nil
	}
	given, err := b.others.GetHeaders(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(headers, given)
	return headers, nil
}

// authorization is the gRPC header of a token.
const authorization = "authorization"
