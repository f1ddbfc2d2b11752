package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	temporalDir = "temporal" // below the state directory
	loopback    = "127.0.0.1"

	// frontendHealthService is the name under which Temporal's frontend reports
	// its health.
	frontendHealthService = "temporal.api.workflowservice.v1.WorkflowService"
)

// TemporalConfig describes the embedded Temporal server.
type TemporalConfig struct {
	// Program is the path of temporal-dev.
	Program string
	// IP is the address to listen on; empty means loopback.
	IP string
	// Port is the frontend's gRPC port; 0 means one that is free now.
	Port int
	// UIPort is the Web UI's port; 0 means no Web UI.
	UIPort int
	// Namespace describes the namespace that must exist before the server counts as
	// ready.
	Namespace Namespace
}

// Temporal is the embedded Temporal server, with its database below a state
// directory.
type Temporal struct {
	config TemporalConfig
	dbFile string
	begun  bool // its ports were free once
}

// PortTakenError is returned when another process has a port.
type PortTakenError struct {
	What    string // what the port is for
	Address string
}

// Error says what to do.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("%s cannot listen on %s, another process does: stop that process, or choose another port", e.What, e.Address)
}

// NewTemporal checks that the program is there and chooses a port where none is
// given.
func NewTemporal(state *State, config TemporalConfig) (*Temporal, error) {
	info, err := os.Stat(config.Program)
	if err != nil || info.IsDir() {
		return nil, fmt.Errorf("the embedded Temporal server %q cannot be used: run \"make bin/temporal-dev\", or set TEMPORAL_ADDRESS to use another server: %w", config.Program, errors.Join(err, errIsDir(info)))
	}
	if err := config.Namespace.validate(); err != nil {
		return nil, err
	}
	if config.IP == "" {
		config.IP = loopback
	}
	if config.Port == 0 {
		if config.Port, err = FreePort(config.IP); err != nil {
			return nil, err
		}
	}
	dir, err := state.Subdir(temporalDir)
	if err != nil {
		return nil, err
	}
	return &Temporal{config: config, dbFile: filepath.Join(dir, "temporal.db")}, nil
}

func errIsDir(info os.FileInfo) error {
	if info != nil && info.IsDir() {
		return errors.New("it is a directory")
	}
	return nil
}

// Address returns the host and port at which this machine reaches the frontend.
func (t *Temporal) Address() string { return t.reach(t.config.Port) }

// UIURL returns the address of the Web UI; empty without one.
func (t *Temporal) UIURL() string {
	if t.config.UIPort == 0 {
		return ""
	}
	return "http://" + t.reach(t.config.UIPort)
}

func (t *Temporal) reach(port int) string {
	host := t.config.IP
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// Process returns the server's process for a supervisor. It is ready when it is healthy
// and the namespace has its settings.
func (t *Temporal) Process() Process {
	return Process{
		Name: "temporal",
		Argv: []string{
			t.config.Program,
			"--db-file", t.dbFile,
			"--ip", t.config.IP,
			"--port", strconv.Itoa(t.config.Port),
			"--ui-port", strconv.Itoa(t.config.UIPort),
			"--namespace", t.config.Namespace.Name,
		},
		Prepare: t.checkPorts,
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()},
		Ready:   t.answer,
	}
}

// checkPorts keeps another server on the port from being taken for this one.
func (t *Temporal) checkPorts(context.Context) error {
	ports := map[string]int{"Temporal": t.config.Port}
	if t.config.UIPort != 0 {
		ports["Temporal's Web UI"] = t.config.UIPort
	}
	for what, port := range ports {
		address := net.JoinHostPort(t.config.IP, strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = &PortTakenError{What: what, Address: address}
		}
		if err != nil {
			if !t.begun {
				return Permanent(err)
			}
			return err
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("looking whether %s is free: %w", address, err)
		}
	}
	t.begun = true
	return nil
}

func (t *Temporal) answer(ctx context.Context) error {
	if err := frontendHealthy(ctx, t.Address()); err != nil {
		return err
	}
	c, err := client.DialContext(ctx, client.Options{
		HostPort:  t.Address(),
		Namespace: t.config.Namespace.Name,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return fmt.Errorf("connecting to Temporal: %w", err)
	}
	defer c.Close()
	err = EnsureNamespace(ctx, c, t.config.Namespace)
	if _, ok := errors.AsType[*AttributeTypeError](err); ok {
		return Permanent(err)
	}
	return err
}

func frontendHealthy(ctx context.Context, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to Temporal: %w", err)
	}
	defer func() { _ = conn.Close() }()
	reply, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: frontendHealthService})
	if err != nil {
		return fmt.Errorf("asking Temporal for its health: %w", err)
	}
	if reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("asking Temporal for its health: it is %v", reply.GetStatus())
	}
	return nil
}
