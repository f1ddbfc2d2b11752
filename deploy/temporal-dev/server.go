package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// clusterID is stored in a new database. It must be a UUID, and constant, or the server
// warns at each later start.
const clusterID = "7f1d0c52-3f0e-4c8e-9d57-6a2f0f6b1e90"

// frontendHealthService is the name under which the frontend reports its health.
const frontendHealthService = "temporal.api.workflowservice.v1.WorkflowService"

// dynamicConfig returns the settings that differ from the server's defaults, to suit
// one machine with one history shard and one SQLite connection, or to enable features
// that Benchloom uses.
func dynamicConfig() dynamicconfig.StaticClient {
	const mebibyte = 1 << 20
	// The default of 512 goroutines per scheduler would wait for one database
	// connection.
	const schedulerWorkers = 32
	return dynamicconfig.StaticClient{
		// Fair shares between queues need one partition for an exact order.
		dynamicconfig.MatchingEnableFairness.Key():              true,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// No task may go to a collector that is stopping its worker.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,
		// Operators pause workflows.
		dynamicconfig.WorkflowPauseEnabled.Key(): true,

		// With the default of 20 polls per second and one shard each hop of a
		// workflow costs about 50 ms after a handful of quick starts.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   1000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      1000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 200,

		// List pages of UI and API; the default of 10 is hit by one person.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,

		// A search attribute can be used as soon as it was added. Reading them
		// past the cache costs database calls, hence the higher limits.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():               10_000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                45_000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():               15_000,

		// Small caches: the same machine measures benchmarks.
		dynamicconfig.HistoryCacheSizeBasedLimit.Key():        true,
		dynamicconfig.HistoryCacheHostLevelMaxSizeBytes.Key(): 64 * mebibyte,
		dynamicconfig.EventsCacheMaxSizeBytes.Key():           8 * mebibyte,

		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():    schedulerWorkers,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():       schedulerWorkers,
		dynamicconfig.MemoryTimerProcessorSchedulerWorkerCount.Key(): schedulerWorkers,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():  schedulerWorkers,
	}
}

// newTemporalServer returns a server with all services; starting it starts them.
func newTemporalServer(ip net.IP, ports ports, database *config.SQL, logger serverLogger) (temporal.Server, error) {
	frontend := net.JoinHostPort(reachable(ip), strconv.Itoa(ports.frontend))
	conf := serverConfig(ip, ports, database)
	authorizer, err := authorization.GetAuthorizerFromConfig(&conf.Global.Authorization)
	if err != nil {
		return nil, fmt.Errorf("creating the authorizer: %w", err)
	}
	claimMapper, err := authorization.GetClaimMapperFromConfig(&conf.Global.Authorization, logger)
	if err != nil {
		return nil, fmt.Errorf("creating the claim mapper: %w", err)
	}
	inner := func(port int) static.Hosts {
		return static.SingleLocalHost(net.JoinHostPort(loopback, strconv.Itoa(port)))
	}
	return temporal.NewServer(
		temporal.WithConfig(conf),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(map[primitives.ServiceName]static.Hosts{
			primitives.FrontendService: static.SingleLocalHost(frontend),
			primitives.HistoryService:  inner(ports.history),
			primitives.MatchingService: inner(ports.matching),
			primitives.WorkerService:   inner(ports.worker),
		}),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claimMapper }),
		temporal.WithDynamicConfigClient(dynamicConfig()),
	)
}

func serverConfig(ip net.IP, ports ports, database *config.SQL) *config.Config {
	const store = "sqlite"
	frontend := net.JoinHostPort(reachable(ip), strconv.Itoa(ports.frontend))
	service := func(bind string, port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: bind}}
	}
	conf := &config.Config{
		Global: config.Global{Membership: config.Membership{
			MaxJoinDuration:  30 * time.Second,
			BroadcastAddress: loopback,
		}},
		Persistence: config.Persistence{
			DefaultStore:     store,
			VisibilityStore:  store,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{store: {SQL: database}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             frontend,
					ClusterID:              clusterID,
				},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(ip.String(), ports.frontend),
			string(primitives.HistoryService):  service(loopback, ports.history),
			string(primitives.MatchingService): service(loopback, ports.matching),
			string(primitives.WorkerService):   service(loopback, ports.worker),
		},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
	const disabled = "disabled"
	conf.Archival.History.State = disabled
	conf.Archival.Visibility.State = disabled
	conf.NamespaceDefaults.Archival.History.State = disabled
	conf.NamespaceDefaults.Archival.Visibility.State = disabled
	return conf
}

// uiAddress returns the address at which this machine reaches the Web UI; empty
// without one.
func uiAddress(ip net.IP, port int) string {
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(reachable(ip), strconv.Itoa(port))
}

// startUI starts the Web UI in the background and returns a function that stops it. The
// UI ends the process if it cannot listen.
func startUI(ip net.IP, port int, frontend, namespace string) (stop func()) {
	if port == 0 {
		return func() {}
	}
	host := ip.String()
	if ip.To4() == nil {
		host = "[" + host + "]"
	}
	ui := uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		Host:                host,
		Port:                port,
		TemporalGRPCAddress: frontend,
		EnableUI:            true,
		DefaultNamespace:    namespace,
		DisableNewsFetch:    true, // nothing here calls out to the internet
		HideLogs:            true,
		// Served without TLS: browsers would drop a secure cookie.
		CORS: uiconfig.CORS{CookieInsecure: true},
	}))
	go func() { _ = ui.Start() }()
	return ui.Stop
}

// waitServing returns when the health check of the frontend succeeds and, if ui is not
// empty, that of the Web UI.
func waitServing(ctx context.Context, frontend, ui string) error {
	conn, err := grpc.NewClient(frontend, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the frontend: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the server did not become healthy within a minute"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !frontendServing(ctx, conn) || !uiServing(ctx, ui) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

func frontendServing(ctx context.Context, conn *grpc.ClientConn) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: frontendHealthService})
	return err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING
}

func uiServing(ctx context.Context, address string) bool {
	if address == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = reply.Body.Close()
	return reply.StatusCode == http.StatusOK
}
