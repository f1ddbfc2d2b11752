package hostile_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

// listener is a TCP address on which a process of a stack listens.
type listener struct {
	process string
	address netip.AddrPort
	// http is whether it answers calls of HTTP/1.1, as browsers make them to plain
	// addresses.
	http bool
}

// listeners lists all TCP addresses on which processes of the stack listen, as the kernel
// knows them.
func (s service) listeners(t *testing.T) []listener {
	t.Helper()
	inodes := make(map[string]netip.AddrPort)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			const address, state, inode, listening = 1, 3, 9, "0A"
			if words := strings.Fields(line); len(words) > inode && words[state] == listening {
				inodes["socket:["+words[inode]+"]"] = kernelAddress(t, words[address])
			}
		}
	}
	processes := maps.Clone(s.Up.Processes)
	processes["up"] = s.Up.PID
	var found []listener
	for name, pid := range processes {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		require.NoError(t, err)
		require.NotEmpty(t, files, "process %s", name)
		for _, file := range files {
			target, err := os.Readlink(file)
			if at, listens := inodes[target]; err == nil && listens {
				found = append(found, listener{name, at, answersHTTP(t, at)})
			}
		}
	}
	slices.SortFunc(found, func(a, b listener) int { return a.address.Compare(b.address) })
	return found
}

// kernelAddress reads an address as /proc writes it: in hexadecimal digits, the IP address
// as 32-bit numbers of this machine.
func kernelAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	require.NoError(t, err)
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	require.True(t, ok, text)
	number, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number))
}

func answersHTTP(t *testing.T, at netip.AddrPort) bool {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/healthz", nil)
	require.NoError(t, err)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil
}

// at returns the only listener at an address of the stack.
func at(t *testing.T, all []listener, address string) listener {
	t.Helper()
	i := slices.IndexFunc(all, func(l listener) bool { return l.address.String() == strings.TrimPrefix(address, "http://") })
	require.GreaterOrEqual(t, i, 0, "nobody listens on %s: %+v", address, all)
	return all[i]
}

// The stack listens on loopback only. What answers HTTP refuses calls for foreign hosts and
// of foreign pages, whatever they ask for and whoever they say they are; the rest does not
// speak to browsers, and asks programs for a token.
func TestForeignCallsAreRefusedAtEveryPort(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	all := s.listeners(t)
	count := make(map[string]int)
	for _, l := range all {
		require.True(t, l.address.Addr().IsLoopback(), "%+v can be reached from elsewhere", l)
		require.Equal(t, l.process != "temporal", l.http, "%+v", l)
		count[l.process]++
		if l.http {
			s.refusesForeigners(t, l)
		}
	}
	require.True(t, at(t, all, s.url).http)
	require.True(t, at(t, all, s.Up.Addresses[up.AddressTemporalUI]).http)
	require.Equal(t, 2, count["api"], "the API and the Web UI: %+v", all)
	require.Equal(t, 1, count["orchestrator"], "metrics: %+v", all)
	require.Equal(t, 3, count["collector-local-1"]+count["collector-local-2"]+count["collector-local-3"], "metrics: %+v", all)
	require.Zero(t, count["postgres"]+count["up"], "%+v", all)
	require.False(t, at(t, all, s.Up.Addresses[up.AddressTemporal]).http)

	t.Run("temporal", s.temporalAsksForToken)
	t.Run("sockets", s.socketsAreClosed)
}

// refusesForeigners tries all that a foreign page, or curl in its name, could send to an
// address, with the token and the cookie of an administrator.
func (s service) refusesForeigners(t *testing.T, l listener) {
	t.Helper()
	own, port := l.address.String(), strconv.Itoa(int(l.address.Port()))
	token := s.token(t, up.TokenUser)
	_, cookie, _ := strings.Cut(s.url, "http://127.0.0.1:")
	call := func(method, path, host string, headers ...string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+own+path, nil)
		require.NoError(t, err)
		request.Host = host
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Cookie", "benchloom_"+cookie+"="+token)
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(t, err)
		defer response.Body.Close()
		if len(headers) > 0 || host != own {
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Contains(t, string(body), "urn:benchloom:foreign-", "%s %s%s with Host %s and %q", method, own, path, host, headers)
			for name := range response.Header {
				require.False(t, strings.HasPrefix(name, "Access-Control-"), "%s lets foreign pages read: %s", own, name)
			}
		}
		return response.StatusCode
	}
	for _, path := range []string{
		"/", "/metrics", "/readyz", "/healthz", "/nothing", "/sign-in", "/collectors", "/requests/x", "/live?subject=service", "/openapi.json",
		"/api/v1/info", "/api/v1/collectors", "/api/v1/tokens", "/api/v1/namespaces", "/api/v1/namespaces/benchloom/workflows", "/api/v1/settings",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port, "0.0.0.0:" + port, "[::]:" + port} {
				require.Equal(t, http.StatusMisdirectedRequest, call(method, path, host), "%s %s%s with Host %s", method, own, path, host)
			}
			for _, headers := range [][]string{
				{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:1"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
			} {
				require.Equal(t, http.StatusForbidden, call(method, path, own, headers...), "%s %s%s with %q", method, own, path, headers)
			}
		}
	}
	require.NotContains(t, []int{http.StatusMisdirectedRequest, http.StatusForbidden}, call(http.MethodGet, "/metrics", own), "its own host is answered")
}

// temporalAsksForToken calls Temporal as programs can and browsers cannot.
func (s service) temporalAsksForToken(t *testing.T) {
	conn, err := grpc.NewClient(s.Up.Addresses[up.AddressTemporal], grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("evil.example"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	c := workflowservice.NewWorkflowServiceClient(conn)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for name, call := range map[string]func() error{
		"list namespaces": func() error {
			_, err := c.ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{})
			return err
		},
		"list workflows": func() error {
			_, err := c.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "benchloom"})
			return err
		},
		"terminate": func() error {
			_, err := c.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
				Namespace: "benchloom", WorkflowExecution: &common.WorkflowExecution{WorkflowId: "reconcile"},
			})
			return err
		},
	} {
		err := call()
		require.Equal(t, codes.PermissionDenied, status.Code(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "needs a token of Benchloom", name)
	}
}

// metricsFlag and uiSocketFlag are flags on the command lines of processes.
var (
	metricsFlag  = flagOf("metrics")
	uiSocketFlag = flagOf("temporal-ui-socket")
)

// flagOf matches a flag with its value on a command line as /proc has it.
func flagOf(name string) *regexp.Regexp {
	return regexp.MustCompile(`--` + name + `\x00([^\x00]+)\x00`)
}

// metricsAddresses reads the addresses of the processes' metrics from their command lines.
func (s service) metricsAddresses(t *testing.T) []string {
	t.Helper()
	var addresses []string
	for _, pid := range s.Up.Processes {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		if found := metricsFlag.FindSubmatch(line); found != nil {
			addresses = append(addresses, string(found[1]))
		}
	}
	require.NotEmpty(t, addresses)
	slices.Sort(addresses)
	return addresses
}

// socketsAreClosed checks that only this user reaches what listens on no port.
func (s service) socketsAreClosed(t *testing.T) {
	database, err := url.Parse(s.Up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	sockets := []string{s.uiSocket(t), filepath.Join(database.Query().Get("host"), ".s.PGSQL.5432")}
	for _, socket := range sockets {
		info, err := os.Stat(socket)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSocket, socket)
		require.Zero(t, info.Mode().Perm()&0o077, "%s: %s", socket, info.Mode())
	}
}

// uiSocket returns the socket of Temporal's Web UI.
func (s service) uiSocket(t *testing.T) string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Up.Processes["api"]))
	require.NoError(t, err)
	found := uiSocketFlag.FindSubmatch(line)
	require.NotNil(t, found, "%q", line)
	return string(found[1])
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort("127.0.0.1")
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// closedAPI starts another API on the stack's record and Temporal, on which reading is
// closed, and returns its address and that of the Web UI there.
func (s service) closedAPI(t *testing.T) (page, ui string) {
	t.Helper()
	p := programs()
	require.NoError(t, p.Find())
	page, ui = freeAddress(t), freeAddress(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close() // the process has its own
	command := exec.Command(p.Benchloom, "api", "--closed-read", "--listen", page, "--temporal-token-file", filepath.Join(s.State(), "tokens", up.TokenTemporal),
		"--temporal-ui", "http://"+ui, "--temporal-ui-listen", ui, "--temporal-ui-socket", s.uiSocket(t))
	command.Env = append(os.Environ(), "DATABASE_URL="+s.Up.Addresses[up.AddressDatabase], "TEMPORAL_ADDRESS="+s.Up.Addresses[up.AddressTemporal], "TEMPORAL_NAMESPACE=benchloom")
	command.Stdout, command.Stderr = log, log
	ended := make(chan error, 1)
	require.NoError(t, command.Start())
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the other API does not end")
			_ = command.Process.Kill()
		}
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the other API:\n%s", text)
		}
	})
	client, err := apiclient.New("http://"+page, "", http.DefaultClient)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.Info(t.Context())
		return err == nil
	}, patience, 50*time.Millisecond, "the other API does not start")
	return "http://" + page, "http://" + ui
}
