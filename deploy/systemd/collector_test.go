// Package systemd_test tests the wrapper that keeps a collector at the wanted
// version, with real processes in the place of the collector.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is one with a wrapper. Its program is a script; each start of it leaves
// a line in the journal.
type machine struct {
	t         *testing.T
	dir       string
	variables []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{t: t, dir: t.TempDir()}
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, text string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(m.path(name), []byte(text), 0o755))
}

// program is a script that answers as version says, and does then as run says.
func program(version, run string) string {
	return `#!/bin/sh
if [ "$1" = version ]; then echo "benchloom ` + version + ` (go, linux)"; exit 0; fi
echo "` + version + ` $*" >>"$BENCHLOOM_COLLECTOR_DIR/journal"
` + run + "\n"
}

func (m *machine) command(args ...string) *exec.Cmd {
	m.t.Helper()
	wrapper, err := filepath.Abs("benchloom-collector")
	require.NoError(m.t, err)
	c := exec.CommandContext(m.t.Context(), wrapper, args...)
	c.Env = append(append(os.Environ(), "BENCHLOOM_PROGRAM="+m.path("benchloom"), "BENCHLOOM_COLLECTOR_DIR="+m.dir, "BENCHLOOM_FETCH_RETRY=0"), m.variables...)
	output, err := os.Create(m.path("output"))
	require.NoError(m.t, err)
	m.t.Cleanup(func() { output.Close() })
	c.Stdout, c.Stderr = output, output
	return c
}

// output returns the output of the wrapper and its collector.
func (m *machine) output() string {
	m.t.Helper()
	text, err := os.ReadFile(m.path("output"))
	require.NoError(m.t, err)
	return string(text)
}

func (m *machine) await(what func() bool) {
	m.t.Helper()
	require.Eventually(m.t, what, time.Minute, 5*time.Millisecond)
}

// run is the wrapper's exit code.
func (m *machine) run(args ...string) int {
	m.t.Helper()
	c := m.command(args...)
	if err := c.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(m.t, err, &exit, m.output())
	}
	return c.ProcessState.ExitCode()
}

func (m *machine) journal() string {
	m.t.Helper()
	text, err := os.ReadFile(m.path("journal"))
	require.NoError(m.t, err)
	return string(text)
}

const outdated = `echo v2 >"$BENCHLOOM_COLLECTOR_DIR/wanted-version"; exit 75`

func TestAnOutdatedCollectorIsReplacedAndStartedAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("benchloom", program("v1", outdated))
	m.write("new", program("v2", "exit 0"))
	m.write("fetch", `#!/bin/sh
cp "$1/new" "$3"
`)
	m.variables = []string{"BENCHLOOM_FETCH=" + m.path("fetch") + " " + m.dir}
	require.Zero(t, m.run("--cpus", "1-2"), m.output())
	require.Equal(t, "v1 collector run --cpus 1-2\nv2 collector run --cpus 1-2\n", m.journal())
	require.Contains(t, m.output(), "version v2 is in place")
}

// A fetch that fails, and one that brings something else, leave the old program
// where it is; they are tried again.
func TestWrongVersionsAreNotInstalled(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("benchloom", program("v1", outdated))
	m.write("new", program("v2", "exit 0"))
	m.write("wrong", program("v3", "exit 0"))
	m.write("fetch", `#!/bin/sh
cmp -s "$BENCHLOOM_PROGRAM" "$BENCHLOOM_COLLECTOR_DIR/benchloom" || exit 9
echo "$1" >>"$BENCHLOOM_COLLECTOR_DIR/fetched"
case $(wc -l <"$BENCHLOOM_COLLECTOR_DIR/fetched") in
1) exit 1 ;;
2) cp "$BENCHLOOM_COLLECTOR_DIR/wrong" "$2" ;;
*) cp "$BENCHLOOM_COLLECTOR_DIR/new" "$2" ;;
esac
`)
	m.variables = []string{"BENCHLOOM_FETCH=" + m.path("fetch")}
	require.Zero(t, m.run(), m.output())
	require.Contains(t, m.output(), "version v2 was not fetched")
	require.Contains(t, m.output(), "what was fetched is not version v2")
	require.Equal(t, "v1 collector run\nv2 collector run\n", m.journal())
	left, err := filepath.Glob(m.path("*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOtherExitCodesArePassedOn(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "1", "6"} {
		m := newMachine(t)
		m.write("benchloom", program("v1", "exit "+code))
		m.variables = []string{"BENCHLOOM_FETCH=false"}
		require.Equal(t, int(code[0]-'0'), m.run())
	}
	m := newMachine(t)
	m.write("benchloom", program("v1", outdated))
	require.Equal(t, 75, m.run())
	require.Contains(t, m.output(), "BENCHLOOM_FETCH does not say how to get it")
}

// A version is a word, never a part of a command or a path.
func TestInvalidVersionsAreNotFetched(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("benchloom", program("v1", `echo '../../x;rm' >"$BENCHLOOM_COLLECTOR_DIR/wanted-version"; exit 75`))
	m.write("fetch", "#!/bin/sh\ntouch \"$BENCHLOOM_COLLECTOR_DIR/fetched\"\n")
	m.variables = []string{"BENCHLOOM_FETCH=" + m.path("fetch"), "BENCHLOOM_FETCH_RETRY=1000"}
	c := m.command()
	require.NoError(t, c.Start())
	m.await(func() bool { return strings.Contains(m.output(), "the wanted version is no version: ../../x;rm") })
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait(), "it was told to stop")
	require.NoFileExists(t, m.path("fetched"))
}

// Told to stop, the wrapper tells the collector, waits for it, and ends with its
// code.
func TestAStopReachesTheCollector(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write("benchloom", program("v1", `trap 'echo stopped >>"$BENCHLOOM_COLLECTOR_DIR/journal"; exit 0' TERM
touch "$BENCHLOOM_COLLECTOR_DIR/up"
while :; do sleep 0.05; done`))
	c := m.command()
	require.NoError(t, c.Start())
	m.await(func() bool { _, err := os.Stat(m.path("up")); return err == nil })
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait())
	require.Equal(t, "v1 collector run\nstopped\n", m.journal())
}

// Limits need a group of the collector's own below the delegated one, and nothing that
// filters system calls may slow down what is measured.
func TestTheUnitProtectsTheProgramAndNotByFiltering(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("benchloom-collector.service")
	require.NoError(t, err)
	set := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			set[name] = value
		}
	}
	for name, value := range map[string]string{
		"User": "benchloom", "Delegate": "yes", "DelegateSubgroup": "collector", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "PrivateTmp": "yes", "CapabilityBoundingSet": "",
	} {
		given, ok := set[name]
		require.True(t, ok && given == value, "%s=%s", name, given)
	}
	for _, filtering := range []string{"SystemCallFilter", "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock", "RestrictSUIDSGID", "RestrictNamespaces", "LockPersonality", "MemoryDenyWriteExecute", "ReadWritePaths"} {
		require.NotContains(t, set, filtering)
	}
}
