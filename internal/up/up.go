// Package up runs the whole service on one machine: a private Postgres, the embedded
// Temporal, the API, an orchestrator and collectors, each as a process.
//
// It decides which processes run, with which arguments and on which cores. Package
// devstack starts and watches them. Package up must not know what they do.
package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Options are the settings of `benchloom up`.
type Options struct {
	StateDir   string
	Collectors string // see [Plan]
	ShareCores bool
	// CoLocated is set if this machine does other work, so that all results are
	// co-located.
	CoLocated bool
	// Ports on loopback; 0 means a free one. The orchestrator serves metrics on
	// MetricsPort, the collectors on the ports after it.
	APIPort, TemporalPort, TemporalUIPort, MetricsPort int
	// TemporalAddress and DatabaseURL, if set, replace the embedded servers.
	TemporalAddress, Namespace, DatabaseURL string
	// Program is the benchloom binary, TemporalProgram the embedded Temporal.
	Program, TemporalProgram string
	Target                   bench.Target
	// Cores are the cores of this machine that may be used.
	Cores measure.CPUList
	// AllowedHosts are names by which clients may call the servers, besides loopback
	// addresses: those that a proxy passes on.
	AllowedHosts []string
	// ClosedRead requires a token for reading, OpenRead none, whatever AllowedHosts holds.
	ClosedRead, OpenRead bool
	// MemoryBytes is the memory for all collectors, divided by size class; 0 if it is not known
	// and they are not limited.
	MemoryBytes int64
	// Bounds are flags of collectors that limit what each benchmark uses, such as --disk 20GiB; those left out have their
	// defaults.
	Bounds []string
	// Isolation of benchmarks is "on" or "off". Accounts are those of the machine.
	Isolation string
	Accounts  accounts.Pool
	// DiskReserve is the free disk space that is kept for the service, as a flag; empty means the default.
	DiskReserve string
	// Environ is the environment of the processes.
	Environ []string
	Log     *slog.Logger
	Now     func() time.Time
}

// Addresses holds the addresses of a running stack.
type Addresses struct {
	API, Temporal, TemporalUI, Database string
}

// Names of addresses and tokens in the state directory.
const (
	AddressAPI        = "api"
	AddressTemporal   = "temporal"
	AddressTemporalUI = "temporal_ui"
	AddressDatabase   = "database"
	TokenUser         = "admin"
	TokenCollector    = "collector"
	// TokenTemporal is the token with which API and orchestrator call Temporal.
	TokenTemporal = "temporal"
)

const loopback = "127.0.0.1"

// Groups of processes, in starting order.
const (
	groupStores = iota
	groupAPI
	groupWorkers
)

// Run starts everything, calls onReady when everything is ready, and stops everything
// when the context ends. Closing hurry makes the stop quick.
func Run(ctx context.Context, o Options, onReady func(Addresses), hurry <-chan struct{}) (err error) {
	layout, err := Plan(o.Cores, o.Collectors, o.ShareCores)
	if err != nil {
		return err
	}
	state, err := devstack.OpenState(o.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	s := &stack{Options: o, state: state, layout: layout}
	defer func() { err = errors.Join(err, s.release()) }()
	if err := s.lease(ctx); err != nil {
		return err
	}
	if err := s.compose(ctx); err != nil {
		return err
	}
	supervisor, err := devstack.NewSupervisor(devstack.Config{State: state, Logger: o.Log}, s.processes...)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-hurry:
			supervisor.Hurry()
		case <-done:
		}
	}()
	go func() {
		select {
		case <-supervisor.Ready():
			if err := s.publish(supervisor); err != nil {
				o.Log.Error("publishing the stack's addresses failed; clients will not find it", "error", err)
			}
			onReady(s.addresses)
		case <-done:
		}
	}()
	return supervisor.Run(ctx)
}

type stack struct {
	Options
	state     *devstack.State
	layout    Layout
	addresses Addresses
	processes []devstack.Process
	nextPort  int
	leases    []*accounts.Lease
	// temporal is the embedded server; nil if another one is used.
	temporal *devstack.Temporal
}

func (s *stack) compose(ctx context.Context) error {
	apiPort, err := s.port(s.APIPort)
	if err != nil {
		return err
	}
	s.addresses.API = "http://" + net.JoinHostPort(loopback, strconv.Itoa(apiPort))
	if err := s.addStores(ctx); err != nil {
		return err
	}
	tokens := make(map[string]string)
	for _, name := range []string{TokenUser, TokenCollector} {
		if _, err := s.state.Token(name); err != nil {
			return fmt.Errorf("making the %s token: %w", name, err)
		}
		tokens[name] = s.state.Path("tokens", name)
	}
	argv := []string{s.Program, "api", "--listen", strings.TrimPrefix(s.addresses.API, "http://"),
		"--user-token-file", tokens[TokenUser], "--collector-token-file", tokens[TokenCollector], "--open-collectors", "--temporal-ui", s.addresses.TemporalUI}
	argv = append(argv, "--watch-disk", s.state.Dir(), "--blobs", s.state.Path("blobs"))
	if s.DiskReserve != "" {
		argv = append(argv, "--disk-reserve", s.DiskReserve)
	}
	if s.ClosedRead {
		argv = append(argv, "--closed-read")
	}
	if s.OpenRead {
		argv = append(argv, "--open-read")
	}
	prepare := portFree("the API", strings.TrimPrefix(s.addresses.API, "http://"), "--api-port")
	if s.temporal != nil {
		page := strings.TrimPrefix(s.addresses.TemporalUI, "http://")
		argv = append(argv, "--temporal-ui-listen", page, "--temporal-ui-socket", s.temporal.UISocket())
		prepare = both(prepare, portFree("Temporal's Web UI", page, "--temporal-ui-port"))
	}
	s.add(devstack.Process{
		Name: "api", Group: groupAPI, Scheduling: s.computing(), Ready: ready(s.addresses.API), Prepare: prepare,
		Argv: s.withTemporalToken(argv),
	}, true)
	s.nextPort = s.MetricsPort
	metrics, err := s.metricsAddress()
	if err != nil {
		return err
	}
	s.add(devstack.Process{
		Name: "orchestrator", Group: groupWorkers, Scheduling: s.serving(), Ready: ready("http://" + metrics),
		Prepare: portFree("the orchestrator's metrics", metrics, "--metrics-port"),
		Argv:    s.withTemporalToken([]string{s.Program, "orchestrator", "--metrics", metrics, "--cache-dir", s.state.Path("orchestrator")}),
	}, true)
	for i, slot := range s.layout.Slots {
		if metrics, err = s.metricsAddress(); err != nil {
			return err
		}
		argv := []string{s.Program, "collector", "--name", slot.Name, "--target", string(s.Target), "--size-class", strconv.Itoa(int(slot.Class)),
			"--pool", "local", "--cpus", slot.CPUs.String(), "--state-dir", s.state.Path("collectors", slot.Name),
			"--artifact-dir", s.state.Path("artifacts"), "--api", s.addresses.API, "--token-file", tokens[TokenCollector], "--metrics", metrics}
		argv = append(append(argv, s.isolated(i)...), s.Bounds...)
		if share := s.layout.MemoryShare(slot, s.MemoryBytes, len(s.Cores)); share > 0 {
			argv = append(argv, "--memory", bench.MemoryText(share))
		}
		if slot.CoLocated || s.CoLocated {
			argv = append(argv, "--co-located")
		}
		var cpus measure.CPUList // all: it keeps off the CPUs of its benchmarks
		if slot.Shared {
			// Others' commands disturb its own there. The services wait for their core.
			cpus = slot.CPUs
		}
		s.add(devstack.Process{
			Name: "collector-" + slot.Name, Group: groupWorkers, Scheduling: devstack.Scheduling{CPUs: cpus, TimerSlack: timerSlack}, Argv: argv, Ready: ready("http://" + metrics), StopBound: 15 * time.Second,
			Prepare: portFree("the metrics of collector "+slot.Name, metrics, "--metrics-port"),
		}, false)
	}
	return nil
}

// addStores adds Postgres and Temporal, unless others are configured.
func (s *stack) addStores(ctx context.Context) error {
	s.addresses.Database, s.addresses.Temporal = s.DatabaseURL, s.TemporalAddress
	if s.DatabaseURL == "" {
		postgres, err := devstack.NewPostgres(ctx, s.state, devstack.PostgresOptions{MinMajor: 13})
		if err != nil {
			return err
		}
		p := postgres.Process()
		p.Group, p.Scheduling = groupStores, s.computing()
		s.processes = append(s.processes, p)
		s.addresses.Database = postgres.DSN()
	}
	if s.TemporalAddress != "" {
		return nil
	}
	ui, err := s.port(s.TemporalUIPort)
	if err != nil {
		return err
	}
	_, err = os.Stat(s.state.Path("tokens", TokenTemporal))
	first := errors.Is(err, fs.ErrNotExist)
	if _, err := s.state.Token(TokenTemporal); err != nil {
		return fmt.Errorf("making the %s token: %w", TokenTemporal, err)
	}
	if _, err := os.Stat(s.state.Path("temporal", "temporal.db")); err == nil && first {
		s.Log.InfoContext(ctx, "calls of the embedded Temporal need a token from now on; its Web UI lets in who may read the API; see docs/temporal.md", "token", s.state.Path("tokens", TokenTemporal))
	}
	s.temporal, err = devstack.NewTemporal(s.state, devstack.TemporalConfig{
		Program: s.TemporalProgram, Port: s.TemporalPort, UI: true, Namespace: Namespace(s.Namespace),
		TokenFile: s.state.Path("tokens", TokenTemporal), API: s.addresses.API,
	})
	if err != nil {
		return err
	}
	p := s.temporal.Process()
	p.Group, p.Scheduling = groupStores, s.serving()
	prepare := p.Prepare
	p.Prepare = func(ctx context.Context) error { return withFlag(prepare(ctx), "--temporal-port") }
	s.processes = append(s.processes, p)
	s.addresses.Temporal = s.temporal.Address()
	s.addresses.TemporalUI = "http://" + net.JoinHostPort(loopback, strconv.Itoa(ui))
	return nil
}

// withTemporalToken adds the token for the embedded Temporal to a command line. Temporal's own
// environment configuration tells other servers who calls.
func (s *stack) withTemporalToken(argv []string) []string {
	if s.temporal == nil {
		return argv
	}
	return append(argv, "--temporal-token-file", s.state.Path("tokens", TokenTemporal))
}

// Namespace returns the settings that Benchloom needs in its Temporal namespace.
func Namespace(name string) devstack.Namespace {
	attributes := make(devstack.SearchAttributes)
	for _, key := range protocol.SearchAttributes() {
		attributes[key.GetName()] = key.GetValueType()
	}
	return devstack.Namespace{Name: name, Attributes: attributes}
}

// add adds one of the service's own processes. Only processes that need the database
// get its address.
func (s *stack) add(p devstack.Process, database bool) {
	for _, host := range s.AllowedHosts {
		p.Argv = append(p.Argv, "--allowed-host", host)
	}
	p.Env = append(withoutService(s.Environ, s.temporal != nil),
		"TEMPORAL_ADDRESS="+s.addresses.Temporal, "TEMPORAL_NAMESPACE="+s.Namespace,
		"GOMEMLIMIT="+memoryLimit(p.Group))
	if database {
		p.Env = append(p.Env, "DATABASE_URL="+s.addresses.Database)
	}
	s.processes = append(s.processes, p)
}

// timerSlack is by how much timers of the stack's processes may be late. As long as a Go program runs, its runtime wakes a thread
// every 20 µs that looks around (sysmon). With short commands one after the other, that took up to a quarter of the time.
const timerSlack = 4 * time.Millisecond

// serving returns the scheduling of a service.
func (s *stack) serving() devstack.Scheduling {
	return devstack.Scheduling{CPUs: s.layout.Services, TimerSlack: timerSlack}
}

// computing returns the scheduling of the API and of Postgres. They pass large answers on to each other, in fewer pieces if neither
// interrupts the other for each of them.
func (s *stack) computing() devstack.Scheduling {
	scheduling := s.serving()
	scheduling.Batch = true
	return scheduling
}

// memoryLimit returns the limit of the Go runtime of a group of processes. Small heaps leave more memory to benchmarks; the API's
// has room for two pages of large projects beside what it keeps, or it would collect garbage most of the time.
func memoryLimit(group int) string {
	if group == groupAPI {
		return "98MiB"
	}
	return "64MiB"
}

// withoutService removes the variables that add sets for each process, and those that
// configure the connection to another Temporal than the embedded one.
func withoutService(environ []string, embedded bool) []string {
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case slices.Contains([]string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "DATABASE_URL", "GOMEMLIMIT"}, name):
		case embedded && strings.HasPrefix(name, "TEMPORAL_"):
		default:
			out = append(out, e)
		}
	}
	return out
}

// port returns the given port, or a free one for 0.
func (s *stack) port(given int) (int, error) {
	if given != 0 {
		return given, nil
	}
	return devstack.FreePort(loopback)
}

func (s *stack) metricsAddress() (string, error) {
	port, err := s.port(s.nextPort)
	if err != nil {
		return "", err
	}
	if s.nextPort != 0 {
		s.nextPort++
	}
	return net.JoinHostPort(loopback, strconv.Itoa(port)), nil
}

// portFree refuses to start a process on a port that another process listens on, which
// would answer for it. Leftovers of an earlier run have been ended by then. Once the
// port was free, a later conflict is retried like any other failure.
func portFree(what, address, flag string) func(context.Context) error {
	begun := false
	return func(ctx context.Context) error {
		err := withFlag(devstack.CheckPort(ctx, what, address), flag)
		begun = begun || err == nil
		if err == nil || begun {
			return err
		}
		return devstack.Permanent(err)
	}
}

// both does one thing after the other.
func both(first, second func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := first(ctx); err != nil {
			return err
		}
		return second(ctx)
	}
}

// withFlag adds the flag that chooses another port to the error.
func withFlag(err error, flag string) error {
	if taken, ok := errors.AsType[*devstack.PortTakenError](err); ok && taken != nil {
		return fmt.Errorf("%w with %s", err, flag)
	}
	return err
}

// ready returns a check of a process's /readyz.
func ready(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		// A process whose only trouble is a short disk has started, and reports it.
		if response.StatusCode != http.StatusOK && response.Header.Get(diskspace.ShortHeader) == "" {
			return fmt.Errorf("%s answers %s", address, response.Status)
		}
		return nil
	}
}

// publish writes the addresses of the stack for clients.
func (s *stack) publish(supervisor *devstack.Supervisor) error {
	pids := make(map[string]int)
	for _, p := range supervisor.Status() {
		pids[p.Name] = p.PID
	}
	return s.state.WriteUp(devstack.Up{Processes: pids, Addresses: map[string]string{
		AddressAPI: s.addresses.API, AddressTemporal: s.addresses.Temporal,
		AddressTemporalUI: s.addresses.TemporalUI, AddressDatabase: withoutPassword(s.addresses.Database),
	}}, s.Now())
}

// TemporalProgram returns the path of the embedded Temporal: BENCHLOOM_TEMPORAL_DEV if
// set, else beside the given binary, else in bin below the working directory.
func TemporalProgram(getenv func(string) string, program string) string {
	if path := getenv("BENCHLOOM_TEMPORAL_DEV"); path != "" {
		return path
	}
	beside := filepath.Join(filepath.Dir(program), "temporal-dev")
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	return filepath.Join("bin", "temporal-dev")
}
