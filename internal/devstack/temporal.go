package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// UI adds the Web UI, on a socket that only this user may open.
	UI bool
	// TokenFile holds the token with which Benchloom's own processes call; if empty, nobody
	// needs a token.
	TokenFile string
	// API is the address of the API, which knows all other tokens; empty if there are none.
	API string
	// Namespace describes the namespace that must exist before the server counts as
	// ready.
	Namespace Namespace
}

// Temporal is the embedded Temporal server, with its database below a state
// directory.
type Temporal struct {
	config TemporalConfig
	dbFile string
	token  string
	socket string // of the Web UI; empty if there is none
	begun  bool   // its port was free once, and its program suitable
}

// NewTemporal checks that the program exists and chooses a port if none is given.
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
	t := &Temporal{config: config, dbFile: filepath.Join(dir, "temporal.db")}
	if config.TokenFile != "" {
		text, err := os.ReadFile(config.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading Temporal's token: %w", err)
		}
		t.token = strings.TrimSpace(string(text))
	}
	if config.UI {
		t.socket = filepath.Join(socketDirFor(filepath.Join(dir, "run")), uiSocketName)
		if len(t.socket) > maxSocketPath {
			return nil, fmt.Errorf("the path of Temporal's socket %s would be %d bytes long, at most %d are possible: set TMPDIR to a directory with a shorter path", t.socket, len(t.socket), maxSocketPath)
		}
	}
	return t, nil
}

// uiSocketName is the file name of the Web UI's socket.
const uiSocketName = "ui.sock"

func errIsDir(info os.FileInfo) error {
	if info != nil && info.IsDir() {
		return errors.New("it is a directory")
	}
	return nil
}

// Address returns the host and port at which this machine reaches the frontend.
func (t *Temporal) Address() string { return t.reach(t.config.Port) }

// UISocket returns the path of the Web UI's Unix socket; empty without one.
func (t *Temporal) UISocket() string { return t.socket }

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
	flags := []string{"--db-file", "--ip", "--port", "--namespace"}
	argv := []string{
		t.config.Program,
		"--db-file", t.dbFile,
		"--ip", t.config.IP,
		"--port", strconv.Itoa(t.config.Port),
		"--namespace", t.config.Namespace.Name,
	}
	for flag, value := range map[string]string{"--ui-socket": t.socket, "--token-file": t.config.TokenFile, "--api": t.config.API} {
		if value != "" {
			flags, argv = append(flags, flag), append(argv, flag, value)
		}
	}
	slices.Sort(flags)
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
	return Process{
		Name: "temporal",
		Argv: argv,
		Prepare: func(ctx context.Context) error {
			err := t.prepare(ctx)
			if err == nil {
				err = t.match(ctx, flags, environ)
			}
			if err != nil && !t.begun {
				return Permanent(err)
			}
			t.begun = t.begun || err == nil
			return err
		},
		Env:   environ,
		Ready: t.answer,
	}
}

// prepare makes the directory of the socket, and checks that no other server on the port can be
// taken for this one.
func (t *Temporal) prepare(ctx context.Context) error {
	if t.socket != "" {
		own := account{kind: accountOwn, uid: os.Geteuid(), gid: os.Getegid()}
		if err := makeSocketDir(filepath.Dir(t.socket), "Temporal's Web UI", own); err != nil {
			return Permanent(err)
		}
	}
	return CheckPort(ctx, "Temporal", net.JoinHostPort(t.config.IP, strconv.Itoa(t.config.Port)))
}

// helpBound bounds the answer of the program to --help, on a busy machine.
const helpBound = time.Minute

// flagOfHelp matches a flag in the program's output for --help.
var flagOfHelp = regexp.MustCompile(`(?m)^  (-[a-z-]+)\b`)

// match refuses a program that was built for another version of Benchloom: without one of the
// flags, it would only print its usage. Its flags count, not its version number.
func (t *Temporal) match(ctx context.Context, flags, environ []string) error {
	ctx, cancel := context.WithTimeout(ctx, helpBound)
	defer cancel()
	const remedy = `run "make build", or set BENCHLOOM_TEMPORAL_DEV to the temporal-dev that was built with this benchloom`
	asked := exec.CommandContext(ctx, t.config.Program, "--help")
	asked.Env = environ
	help, err := asked.CombinedOutput()
	if err != nil {
		return fmt.Errorf("asking the embedded Temporal server %q for its flags: %w; %s", t.config.Program, err, remedy)
	}
	known := make(map[string]bool)
	for _, flag := range flagOfHelp.FindAllStringSubmatch(string(help), -1) {
		known["-"+flag[1]] = true
	}
	missing := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return known[flag] })
	if len(missing) > 0 {
		return fmt.Errorf("the embedded Temporal server %q does not match this benchloom, it does not know %s: %s", t.config.Program, strings.Join(missing, ", "), remedy)
	}
	return nil
}

func (t *Temporal) answer(ctx context.Context) error {
	if err := frontendHealthy(ctx, t.Address()); err != nil {
		return err
	}
	options := client.Options{
		HostPort:  t.Address(),
		Namespace: t.config.Namespace.Name,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	if t.token != "" {
		options.HeadersProvider = bearer(t.token)
	}
	c, err := client.DialContext(ctx, options)
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

// bearer is a token sent with each call.
type bearer string

func (b bearer) GetHeaders(context.Context) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
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
