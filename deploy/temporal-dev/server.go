package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
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
		// A poll is authorised when it begins: none lasts long after its token was revoked.
		dynamicconfig.MatchingLongPollExpirationInterval.Key(): 25 * time.Second,
		// Refusals say why.
		dynamicconfig.ExposeAuthorizerErrors.Key(): true,
		// Operators pause workflows.
		dynamicconfig.WorkflowPauseEnabled.Key(): true,

		// With the default of 20 polls per second and one shard each hop of a
		// workflow costs about 50 ms after a handful of quick starts.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   1000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      1000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 200,

		// List pages of UI and API; one person exceeds the default of 10.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,

		// The only namespace with work may take all of the database.
		dynamicconfig.FrontendPersistenceMaxQPS.Key(): 10_000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():  45_000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key(): 15_000,

		// A queue keeps its tasks for half a minute in memory. If it were limited to the
		// namespaces that had tasks at its last tidying up, each new task would have all of
		// them sorted anew: a tenth of the server's CPU time at thirty workflows a second.
		dynamicconfig.QueueShrinkPredicateMaxPendingKeys.Key(): 0,

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

// newTemporalServer returns a server with all services; starting it starts them. Without
// access control, everybody who reaches the frontend may do everything.
func newTemporalServer(ip net.IP, ports ports, database *config.SQL, a *access, logger serverLogger) (temporal.Server, error) {
	frontend := net.JoinHostPort(reachable(ip), strconv.Itoa(ports.frontend))
	inner := func(port int) static.Hosts {
		return static.SingleLocalHost(net.JoinHostPort(loopback, strconv.Itoa(port)))
	}
	conf := serverConfig(ip, ports, database)
	services := slices.Clone(temporal.DefaultServices)
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(frontend),
		primitives.HistoryService:  inner(ports.history),
		primitives.MatchingService: inner(ports.matching),
		primitives.WorkerService:   inner(ports.worker),
	}
	settings := newSettings(time.Now)
	interceptors := []grpc.UnaryServerInterceptor{settings.intercept}
	options := []temporal.ServerOption{
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(settings),
	}
	if a == nil {
		options = append(options, temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
			temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }))
	} else {
		// The server's own workers have no token: they use a frontend of their own, which
		// only this process can reach.
		services = append(services, string(primitives.InternalFrontendService))
		hosts[primitives.InternalFrontendService] = inner(ports.internal)
		conf.Services[string(primitives.InternalFrontendService)] = listening(loopback, ports.internal)
		conf.PublicClient = config.PublicClient{}
		options = append(options, temporal.WithTLSConfigFactory(a.transport))
		options = append(options, a.options()...)
		if a.guard != nil {
			interceptors = append(interceptors, a.tasks.intercept)
		}
	}
	options = append(options, temporal.WithChainedFrontendGrpcInterceptors(interceptors...))
	return temporal.NewServer(append(options,
		temporal.WithConfig(conf), temporal.ForServices(services), temporal.WithStaticHosts(hosts))...)
}

// access protects a server.
type access struct {
	transport *transport
	guard     *guard // nil: every client with a certificate may do everything
	tasks     taskTokens
}

// options returns the options of a protected server.
func (a *access) options() []temporal.ServerOption {
	if a.guard == nil {
		return []temporal.ServerOption{
			temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
			temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		}
	}
	return []temporal.ServerOption{
		temporal.WithAuthorizer(a.guard),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return a.guard }),
	}
}

func listening(bind string, port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: bind}}
}

func serverConfig(ip net.IP, ports ports, database *config.SQL) *config.Config {
	const store = "sqlite"
	frontend := net.JoinHostPort(reachable(ip), strconv.Itoa(ports.frontend))
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
			string(primitives.FrontendService): listening(ip.String(), ports.frontend),
			string(primitives.HistoryService):  listening(loopback, ports.history),
			string(primitives.MatchingService): listening(loopback, ports.matching),
			string(primitives.WorkerService):   listening(loopback, ports.worker),
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

// waitServing returns when the frontend is healthy; own is the transport of a protected frontend.
func waitServing(ctx context.Context, frontend string, own *transport) error {
	security := insecure.NewCredentials()
	if own != nil && own.served != nil {
		security = credentials.NewTLS(own.asOwn())
	}
	conn, err := grpc.NewClient(frontend, grpc.WithTransportCredentials(security))
	if err != nil {
		return fmt.Errorf("connecting to the frontend: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the server did not become healthy within a minute"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !frontendServing(ctx, conn) {
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
