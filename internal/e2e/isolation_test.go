package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

// spying prints a line for each attempt of a benchmark that succeeds though it must not.
const spying = `hit() { echo "H""IT $*"; }
cat %[1]s/tokens/admin %[1]s/collectors/*/token* %[1]s/collectors/*/machine-id && hit read a secret
ls %[1]s/postgres && hit listed the database
ls %[1]s/collectors/local-1/spool && hit listed the spool
tr '\0' '\n' </proc/$PPID/environ | grep -q TEMPORAL_ADDRESS && hit read the environment of its collector
for f in %[1]s/artifacts/planted %[1]s/collectors/local-1/suites/planted %[1]s/collectors/local-1/spool/planted %[1]s/planted /etc/planted; do touch $f && hit wrote $f; done
[ "$(id -u)" = 0 ] && hit is root
touch "$TMPDIR/own" "$HOME/own" || hit has no directory of its own
true`

// isolated starts the service with isolated benchmarks, by a command that takes rights from it.
func isolated(t *testing.T, through ...string) *stack {
	t.Helper()
	// Everybody can pass, unlike through the directories of tests.
	dir, err := os.MkdirTemp("/tmp", "benchloom-isolation-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	s := &stack{
		dir: filepath.Join(dir, "state"), bin: copyProgram(t, binary(t, "BENCHLOOM_BIN", "benchloom"), dir), points: filepath.Join(dir, "points"),
		args: []string{"--isolation", "on", "--collectors", "1x1", "--share-cores"}, through: through,
	}
	copyProgram(t, binary(t, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev"), dir)
	require.NoError(t, os.MkdirAll(s.points, 0o777))
	s.start(t)
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			s.dump(t)
		}
	})
	return s
}

// copyProgram copies a program to where every user may run it.
func copyProgram(t *testing.T, program, dir string) string {
	t.Helper()
	from, err := os.Open(program)
	require.NoError(t, err)
	defer from.Close()
	path := filepath.Join(dir, filepath.Base(program))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return path
}

// spied returns what a benchmark could do that it must not.
func (s *stack) spied(t *testing.T) (hits []string) {
	t.Helper()
	command := &apiclient.Command{Argv: []string{"sh", "-c", fmt.Sprintf(spying, s.dir)}}
	request := s.submit(t, apiclient.NewRequest{Command: command})
	d := s.await(t, request.ID, ended)
	requireSuccess(t, d.Outcome, d)
	piece, err := s.api.RunLog(t.Context(), s.runsOf(t, request.ID)[0].ID, apiclient.LogQuery{})
	require.NoError(t, err)
	for line := range strings.Lines(string(piece.Data)) {
		if hit, ok := strings.CutPrefix(strings.TrimSpace(line), "HIT "); ok {
			hits = append(hits, hit)
		}
	}
	return hits
}

// lacking returns the limits that the collector says it cannot enforce, which are those of 'collector check'.
func (s *stack) lacking(t *testing.T) (names []measure.Limit) {
	t.Helper()
	argv := append(append([]string{}, s.through...), s.bin, "collector", "check", "-o", "json")
	command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	command.Dir = "/tmp"
	out, err := command.Output()
	require.NoError(t, err)
	var checked struct{ Limits []tune.Enforcement }
	require.NoError(t, json.Unmarshal(out, &checked))
	for _, u := range s.collector(t, "local-1").Unenforced {
		require.NotEmpty(t, u.Reason)
		names = append(names, measure.Limit(u.Name))
	}
	for _, e := range checked.Limits {
		if !e.Enforced {
			require.NotEmpty(t, e.Remedy, e.Limit)
			require.Contains(t, append(names, measure.LimitCPUs), e.Limit, "the collector reports it, too")
		}
	}
	return names
}

// Whoever runs the service, its benchmarks have what they need, and what the machine cannot keep from them is said.
func TestLongTheServiceIsolatesBenchmarksAsFarAsItMay(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can take the parts of others
	}
	t.Run("root", func(t *testing.T) {
		t.Parallel()
		s := isolated(t)
		require.Empty(t, s.spied(t))
		lacking := s.lacking(t)
		for _, limit := range []measure.Limit{measure.LimitAccount, measure.LimitFiles, measure.LimitProcesses, measure.LimitNetwork} {
			require.NotContains(t, lacking, limit)
		}
		var facts struct{ Isolation string }
		require.NoError(t, json.Unmarshal(s.collector(t, "local-1").Facts, &facts))
		require.Equal(t, "account,files,network,privileges,processes", facts.Isolation)
	})
	t.Run("root of a container without privileges", func(t *testing.T) {
		t.Parallel()
		// The capabilities that container engines leave by default.
		s := isolated(t, "setpriv", "--inh-caps=-all", "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot,+mknod,+audit_write,+setfcap", "--")
		require.Empty(t, s.spied(t), "the account has no rights either")
		lacking := s.lacking(t)
		for _, limit := range []measure.Limit{measure.LimitFiles, measure.LimitProcesses, measure.LimitNetwork} {
			require.Contains(t, lacking, limit)
		}
		require.NotContains(t, lacking, measure.LimitAccount)
	})
	t.Run("an ordinary user", func(t *testing.T) {
		t.Parallel()
		s := isolated(t, "setpriv", "--reuid=nobody", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--", "env", "HOME=/tmp")
		require.NotContains(t, s.spied(t), "is root")
		lacking := s.lacking(t)
		for _, limit := range []measure.Limit{measure.LimitFiles, measure.LimitProcesses, measure.LimitNetwork} {
			require.Contains(t, lacking, limit)
		}
	})
}

// Without an account, a collector that is root starts only where benchmarks are allowed all that root may.
func TestRootWithoutAnAccountIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return
	}
	s := startStack(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--isolation", "on", "--account", "benchloom-none"}, "make one with 'benchloom collector setup'"},
		{[]string{"--isolation", "perhaps"}, "use on or off"},
		{[]string{"--isolation", "off", "--account", "benchloom-1"}, "--account is for collectors that run as root"},
	} {
		l := s.launchCollector(t, "refused", "refused", c.args...)
		require.Error(t, <-l.exited)
		text, err := os.ReadFile(filepath.Join(s.dir, "logs", "refused.log"))
		require.NoError(t, err)
		require.Contains(t, string(text), c.want)
	}
	require.Equal(t, bench.CollectorWaiting, s.collector(t, "local-1").State)
}
