package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
)

// another starts one more API or orchestrator on the stack's Temporal and Postgres and
// waits until it is ready. The flag sets its listen address.
func (s *stack) another(t *testing.T, name, flag string, args ...string) (address string) {
	t.Helper()
	port, err := devstack.FreePort("127.0.0.1")
	require.NoError(t, err)
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	log, err := os.Create(filepath.Join(s.dir, "logs", name+"-another.log"))
	require.NoError(t, err)
	defer log.Close() // the process has its own
	command := exec.Command(s.bin, append([]string{name, flag, listen, "--temporal-token-file", filepath.Join(s.dir, "tokens", up.TokenTemporal)}, args...)...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.up.Addresses[up.AddressTemporal], "TEMPORAL_NAMESPACE=benchloom",
		"DATABASE_URL="+s.up.Addresses[up.AddressDatabase])
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, command.Start())
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-exited:
		case <-time.After(patience):
			_ = command.Process.Kill()
		}
	})
	address = "http://" + listen
	require.Eventually(t, func() bool {
		response, err := http.Get(address + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "the other %s is not ready", name)
	return address
}

// at returns the account as a client of another API.
func (a account) at(t *testing.T, address string) account {
	t.Helper()
	api, err := apiclient.New(address, a.token, &http.Client{Timeout: time.Minute})
	require.NoError(t, err)
	return account{name: a.name, token: a.token, api: api}
}

// Two APIs and two orchestrators share one Temporal and one Postgres. A request to one
// API starts exactly once, and can be read, listed and cancelled through the other.
func TestLongTwoAPIsAndTwoOrchestrators(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	address := s.another(t, "api", "--listen")
	s.another(t, "orchestrator", "--metrics", "--cache-dir", t.TempDir())
	temporal := s.temporal(t)
	require.Eventually(t, func() bool {
		d, err := temporal.DescribeTaskQueue(t.Context(), protocol.OrchestratorTaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		identities := make(map[string]bool)
		for _, p := range d.GetPollers() {
			identities[p.GetIdentity()] = true
		}
		return err == nil && len(identities) == 2
	}, patience, 50*time.Millisecond, "not both orchestrators take part")

	here := s.account(t, "here")
	there := here.at(t, address)
	var ids []bench.RequestID
	for i := range 20 {
		at := []account{here, there}[i%2]
		ids = append(ids, at.queueOne(t, "", "true"))
	}
	ids = append(ids, here.queueFile(t, 50, "", "true"), there.queueFile(t, 50, "", "true"))
	dropped := here.queueFile(t, 1000, "", short()...)
	_, err := there.api.CancelRequest(t.Context(), string(dropped), apiclient.Act{Reason: "not needed"})
	require.NoError(t, err)
	for i, id := range ids {
		var d apiclient.RequestDetail
		require.Eventually(t, func() bool {
			d, err = []account{there, here}[i%2].api.Request(t.Context(), string(id))
			return err == nil && d.Status == bench.Completed
		}, ended, 50*time.Millisecond, "request %s does not end", id)
		requireSuccess(t, d.Outcome, d.Message)
	}
	require.Equal(t, bench.Cancelled, s.await(t, dropped, ended).Outcome)
	var jobs, runs int
	require.NoError(t, s.database(t).QueryRow(t.Context(), `
		select count(distinct j.id), count(*) from job_queue j join job_run n on n.job_id = j.id
		where j.status = 'success'`).Scan(&jobs, &runs))
	require.Equal(t, fmt.Sprint(120, 120), fmt.Sprint(jobs, runs), "jobs and runs")
}
