package measure_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

// isolated returns a sandbox whose commands run in namespaces, and false where the machine allows none: then that is said.
func isolated(t *testing.T, config measure.SandboxConfig) (*measure.Sandbox, bool) {
	t.Helper()
	sandbox := newSandbox(t, config)
	for _, limit := range []measure.Limit{measure.LimitProcesses, measure.LimitFiles, measure.LimitNetwork} {
		if lacks(sandbox.Unenforced(), limit) {
			require.False(t, mayIsolate(t), "not isolated: %v", sandbox.Unenforced())
			return sandbox, false
		}
	}
	return sandbox, true
}

// mayIsolate reports whether this process has CAP_SYS_ADMIN.
func mayIsolate(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	effective, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	require.NoError(t, err)
	return effective>>unix.CAP_SYS_ADMIN&1 == 1
}

// shell runs a script and returns its output.
func shell(t *testing.T, sandbox *measure.Sandbox, script string) (string, measure.Sample) {
	t.Helper()
	var output bytes.Buffer
	sample, err := sandbox.Run(t.Context(), measure.Command{
		Argv: []string{"/bin/sh", "-c", script}, Env: measure.BaseEnv(sandbox.TempDir(), "/"), Output: &output,
	})
	require.NoError(t, err)
	return output.String(), sample
}

// processesOf returns the living processes whose command line names a path.
func processesOf(t *testing.T, path string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(text), path) && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestACommandSeesOnlyItsOwnProcesses(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	for range 2 {
		output, sample := shell(t, sandbox, `cd /proc && echo [0-9]*; tr '\0' ' ' </proc/1/cmdline; kill -0 `+strconv.Itoa(os.Getpid())+` || echo " no collector"`)
		require.True(t, sample.Succeeded(), output)
		own, rest, _ := strings.Cut(output, "\n")
		require.Contains(t, rest, "benchloom-sandbox-init")
		require.Contains(t, rest, "no collector")
		require.Len(t, strings.Fields(own), 2, "the init process and the shell: %s", own)
	}
}

func TestACommandSeesNothingOfHiddenPaths(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for _, dir := range []string{"artifacts", "secrets", "cache"} {
		require.NoError(t, os.Mkdir(filepath.Join(state, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(state, dir, "file"), []byte(dir), 0o644))
	}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o644))
	sandbox, ok := isolated(t, measure.SandboxConfig{
		WorkDir: filepath.Join(state, "work"),
		Isolation: measure.Isolation{
			Hidden: []string{state, token, filepath.Join(state, "missing"), "/no/such/path"}, ReadOnly: []string{filepath.Join(state, "artifacts"), token},
		},
	})
	if !ok {
		return
	}
	require.NoError(t, sandbox.Show(measure.Shown{Writable: []string{filepath.Join(state, "cache")}}))
	output, _ := shell(t, sandbox, "cd "+state+` && ls; cat artifacts/file cache/file; cat secrets/file; echo x >artifacts/file; echo x >new
		echo changed >cache/file; echo made >work/file; cat `+token)
	for _, want := range []string{"artifacts\ncache\nwork\n", "artifactscache", "secrets/file: No such file", "cannot create artifacts/file", "cannot create new"} {
		require.Contains(t, output, want)
	}
	require.NotContains(t, output, "secret\n")
	for file, want := range map[string]string{"artifacts/file": "artifacts", "cache/file": "changed\n", "work/file": "made\n", "secrets/file": "secrets"} {
		text, err := os.ReadFile(filepath.Join(state, file))
		require.NoError(t, err)
		require.Equal(t, want, string(text), file)
	}
	// What others add later is there, what is hidden stays so.
	require.NoError(t, os.WriteFile(filepath.Join(state, "artifacts", "later"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(state, "later"), nil, 0o644))
	output, _ = shell(t, sandbox, "ls "+state+" "+state+"/artifacts")
	require.Equal(t, 1, strings.Count(output, "later"), output)
}

func TestACommandCannotChangeTheMachine(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	outside := t.TempDir()
	groups, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	require.NoError(t, err)
	for _, attempt := range append([]string{
		"echo x >/etc/benchloom-test", "echo x >" + outside + "/file", "mkdir /usr/benchloom-test", "touch /dev/benchloom-test",
		"cat /proc/sys/vm/swappiness >/proc/sys/vm/swappiness", "cat /sys/kernel/mm/transparent_hugepage/enabled >/sys/kernel/mm/transparent_hugepage/enabled",
		"echo h >/proc/sysrq-trigger", "mount -t tmpfs tmpfs /mnt", "mount -o remount,rw /", "umount /tmp", "umount /proc", "hostname benchloom-test",
		"mknod $TMPDIR/disk b 254 0", "echo $$ >/sys/fs/cgroup/cgroup.procs", "nsenter --target 1 --mount true",
	}, moves(groups)...) {
		output, sample := shell(t, sandbox, attempt)
		require.NotZero(t, sample.ExitCode, "%s: %s", attempt, output)
	}
	require.NoFileExists(t, filepath.Join(outside, "file"))

	// What every program may expect is there, but only there.
	name := "benchloom-" + sandbox.Name()
	output, sample := shell(t, sandbox, "set -e; for d in /tmp /var/tmp /dev/shm $TMPDIR; do echo x >$d/"+name+"; done; echo x >/dev/null; head -c 1 /dev/urandom >/dev/null")
	require.True(t, sample.Succeeded(), output)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	require.FileExists(t, filepath.Join(sandbox.TempDir(), name))
}

// moves are attempts to leave the control group.
func moves(groups []string) (attempts []string) {
	for _, file := range groups {
		attempts = append(attempts, "echo $$ >"+file)
	}
	return attempts
}

func TestACommandHasANetworkOnlyIfItAsks(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	for _, network := range []bool{false, true, true, false, false, true} {
		command := helperCommand(sandbox, "dial", listener.Addr().String())
		command.Network = network
		sample, err := sandbox.Run(t.Context(), command)
		require.NoError(t, err)
		require.Equal(t, network, sample.Succeeded())

		command = helperCommand(sandbox, "loopback")
		command.Network = network
		sample, err = sandbox.Run(t.Context(), command)
		require.NoError(t, err)
		require.True(t, sample.Succeeded(), "a loopback interface is always there")
	}
	output, _ := shell(t, sandbox, "cat /proc/net/dev")
	require.Equal(t, 1, strings.Count(output, ":"), output)
}

func TestACommandGainsNoPrivileges(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return
	}
	dir, err := os.MkdirTemp("", "measure-privileges-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	// The account cannot even enter what is around its work directory.
	require.NoError(t, os.Chmod(dir, 0o700))
	const nobody = 65534
	sandbox := newSandbox(t, measure.SandboxConfig{
		WorkDir: filepath.Join(dir, "work"), User: &measure.User{UID: nobody, GID: nobody}, Isolation: measure.Isolation{Hidden: []string{dir}},
	})
	require.False(t, lacks(sandbox.Unenforced(), measure.LimitAccount))
	output, sample := shell(t, sandbox, "grep -E 'NoNewPrivs|Cap|Groups' /proc/self/status; echo x >$TMPDIR/file && echo written; kill -TERM 1 || echo kept")
	require.True(t, sample.Succeeded(), output)
	require.Contains(t, output, "NoNewPrivs:\t1")
	require.Contains(t, output, "written")
	require.Contains(t, output, "kept")
	require.Equal(t, 5, strings.Count(output, ":\t0000000000000000\n"), output)

	// Root has what it needs for its own files only, and that is said.
	sandbox = newSandbox(t, measure.SandboxConfig{})
	require.True(t, lacks(sandbox.Unenforced(), measure.LimitAccount))
	output, _ = shell(t, sandbox, "grep CapEff /proc/self/status")
	require.NotContains(t, output, "ffffff")
}

func TestEscapedProcessesDie(t *testing.T) {
	t.Parallel()
	for _, disableCgroups := range []bool{false, true} {
		sandbox, ok := isolated(t, measure.SandboxConfig{DisableCgroups: disableCgroups})
		if !ok {
			return
		}
		require.False(t, lacks(sandbox.Unenforced(), measure.LimitTree))
		for _, way := range []string{"child", "session", "orphan"} {
			file := filepath.Join(sandbox.WorkDir(), way)
			sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "behind", way, file))
			require.NoError(t, err, way)
			require.True(t, sample.Succeeded(), way)
			require.Equal(t, 1, sample.LeftBehind, way)
			require.Empty(t, processesOf(t, sandbox.WorkDir()), way)
		}
		// A sibling of the command, in a session of its own, is a child of the collector.
		sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "sibling", filepath.Join(sandbox.WorkDir(), "sibling")))
		require.NoError(t, err)
		require.True(t, sample.Succeeded())
		require.Equal(t, 1, sample.LeftBehind)
		require.Empty(t, processesOf(t, sandbox.WorkDir()))
	}
}

func TestCancellingKillsAllThatIsolationHolds(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"family": nil, "sibling": {"and sleep"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandbox, ok := isolated(t, measure.SandboxConfig{})
			if !ok {
				return
			}
			target := sandbox.WorkDir()
			if name == "sibling" {
				target = filepath.Join(target, "main")
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			var sample measure.Sample
			go func() {
				var err error
				sample, err = sandbox.Run(ctx, helperCommand(sandbox, name, append([]string{target}, args...)...))
				ended <- err
			}()
			waitFor(t.Context(), t, func() bool { _, err := os.Stat(filepath.Join(sandbox.WorkDir(), "main")); return err == nil })
			// Somebody with the right to do so moves all of them to the collector's own control groups.
			for _, pid := range processesOf(t, sandbox.WorkDir()) {
				groups, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
				require.NoError(t, err)
				for _, group := range append(groups, "/sys/fs/cgroup/cgroup.procs") {
					_ = os.WriteFile(group, []byte(strconv.Itoa(pid)), 0)
				}
			}
			cancel()
			require.NoError(t, <-ended)
			require.Equal(t, measure.StatusCancelled, sample.Status)
			require.Empty(t, processesOf(t, sandbox.WorkDir()))
			output, sample := shell(t, sandbox, "echo works")
			require.True(t, sample.Succeeded())
			require.Equal(t, "works\n", output)
		})
	}
}

// A command without namespaces, with the right to do so, leaves the control groups.
func TestACommandThatMovedAwayIsKilledAtItsTimeout(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open})
	script := `for g in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do echo $$ 2>/dev/null >$g; done
		sleep 600 "$0" & setsid sleep 600 "$0" & sleep 600 "$0"`
	command := measure.Command{
		Argv: []string{"/bin/sh", "-c", strings.ReplaceAll(script, `600 "$0"`, "600.0"+strconv.Itoa(os.Getpid()))},
		Env:  measure.BaseEnv(sandbox.TempDir(), "/"), Timeout: 500 * time.Millisecond,
	}
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, measure.StatusTimedOut, sample.Status)
	require.Empty(t, processesOf(t, "600.0"+strconv.Itoa(os.Getpid())))

	// Nor does it outlive its main process.
	command.Timeout = 0
	command.Argv[2] = strings.Replace(command.Argv[2], "& sleep 600.0"+strconv.Itoa(os.Getpid()), "& exit", 1)
	sample, err = sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, measure.StatusExited, sample.Status)
	require.Empty(t, processesOf(t, "600.0"+strconv.Itoa(os.Getpid())))
}

func TestACrowdDies(t *testing.T) {
	t.Parallel()
	crowd(t, 300)
}

func TestLongTenThousandChildrenAtTheEndDie(t *testing.T) {
	crowd(t, 10_000)
}

// crowd runs a command that leaves n processes behind.
func crowd(t *testing.T, n int) {
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	output, sample := shell(t, sandbox, fmt.Sprintf(`mkfifo fifo; exec 3<>fifo; i=0
		while [ $i -lt %d ]; do (read line <&3) & i=$((i+1)); done; echo %s`, n, sandbox.WorkDir()))
	require.True(t, sample.Succeeded(), output)
	require.Equal(t, n, sample.LeftBehind)
	require.Empty(t, processesOf(t, sandbox.WorkDir()))
	_, sample = shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
}

func TestAnInitProcessKilledFromOutsideIsNoticed(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	kill := func() {
		process, err := os.FindProcess(sandbox.InitPID())
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		waitFor(t.Context(), t, func() bool { return !alive(process.Pid) })
	}
	marker := filepath.Join(sandbox.WorkDir(), "main")
	ended := make(chan error)
	go func() {
		_, err := sandbox.Run(t.Context(), helperCommand(sandbox, "sleeper", marker))
		ended <- err
	}()
	waitFor(t.Context(), t, func() bool { _, err := os.Stat(marker); return err == nil })
	kill()
	require.ErrorContains(t, <-ended, "init process")
	require.Empty(t, processesOf(t, sandbox.WorkDir()))

	// The next command has another one, also if it ended between commands.
	for range 2 {
		_, sample := shell(t, sandbox, "true")
		require.True(t, sample.Succeeded())
		kill()
	}
}

func TestIsolatedCommandsDieWithTheirCollector(t *testing.T) {
	t.Parallel()
	config := measure.SandboxConfig{}
	fillConfig(t, &config)
	if _, ok := isolated(t, measure.SandboxConfig{}); !ok {
		return
	}
	collector := exec.CommandContext(t.Context(), "/proc/self/exe", config.Name, config.WorkDir, config.CgroupParent)
	collector.Env = append(os.Environ(), helperVariable+"=isolated collector")
	require.NoError(t, collector.Start())
	waitFor(t.Context(), t, func() bool { _, err := os.Stat(filepath.Join(config.WorkDir, "main")); return err == nil })
	require.Len(t, processesOf(t, config.WorkDir), 5, "the collector and the family")
	require.NoError(t, collector.Process.Kill())
	require.Error(t, collector.Wait())
	waitFor(t.Context(), t, func() bool { return len(processesOf(t, config.WorkDir)) == 0 })
	// Its successor finds a free slot, and removes the groups.
	sandbox, err := measure.NewSandbox(config)
	require.NoError(t, err)
	require.NoError(t, sandbox.Close())
}

func TestACleanSlotIsEmpty(t *testing.T) {
	t.Parallel()
	for name, isolation := range map[string]measure.Isolation{"isolated": {}, "open": open} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandbox := newSandbox(t, measure.SandboxConfig{Isolation: isolation})
			precious := filepath.Join(t.TempDir(), "precious")
			require.NoError(t, os.WriteFile(precious, nil, 0o644))
			// Deeper than paths are long, a directory that its owner cannot read, a link to elsewhere.
			command := helperCommand(sandbox, "nest", "3000")
			sample, err := sandbox.Run(t.Context(), command)
			require.NoError(t, err)
			require.True(t, sample.Succeeded())
			_, sample = shell(t, sandbox, "set -e; mkdir -p $TMPDIR/a/b locked/in .benchloom-1; touch file .benchloom-1/x; chmod 0 locked; ln -s "+filepath.Dir(precious)+" link")
			require.True(t, sample.Succeeded())
			if name == "isolated" {
				_, sample = shell(t, sandbox, "echo x >/tmp/left; echo x >/dev/shm/left")
				require.True(t, sample.Succeeded())
			}

			require.NoError(t, sandbox.Clean(t.Context()))
			entries, err := os.ReadDir(sandbox.WorkDir())
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.Equal(t, filepath.Base(sandbox.TempDir()), entries[0].Name())
			require.FileExists(t, precious)
			output, _ := shell(t, sandbox, "ls -A $TMPDIR; ls /tmp/left /dev/shm/left 2>/dev/null")
			require.Empty(t, output)
		})
	}
}

// A container without privileges, and an ordinary user: commands run, and what they are not kept from is said, each by itself.
func TestWithoutPrivilegesEachMissingPartIsNamed(t *testing.T) {
	t.Parallel()
	users := map[string]*measure.User{"root without capabilities": nil}
	if mayIsolate(t) {
		users["ordinary user"] = &measure.User{UID: 65534, GID: 65534}
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer, ok := isolated(t, measure.SandboxConfig{User: user, Isolation: measure.Isolation{Hidden: []string{t.TempDir()}}})
			if !ok {
				return
			}
			var output bytes.Buffer
			command := helperCommand(outer, "nested", filepath.Join(outer.WorkDir(), "inner"))
			command.Argv[0], command.Output = "/proc/self/exe", &output
			sample, err := outer.Run(t.Context(), command)
			require.NoError(t, err)
			require.True(t, sample.Succeeded(), output.String())
			for _, want := range []string{"processes:", "files:", "network:", "memory:", "pids:", "process_tree:", "ran: exited 0"} {
				require.Contains(t, output.String(), want)
			}
			if user != nil {
				require.Contains(t, output.String(), "run the collector as root")
			} else {
				require.Contains(t, output.String(), "CAP_SYS_ADMIN is missing")
				require.Contains(t, output.String(), "account:")
			}
			require.NotContains(t, output.String(), "privileges:")
		})
	}
}

func TestACommandNeverRunsLessIsolatedThanBefore(t *testing.T) {
	t.Parallel()
	shown := filepath.Join(t.TempDir(), "shown")
	require.NoError(t, os.Mkdir(shown, 0o755))
	sandbox, ok := isolated(t, measure.SandboxConfig{Isolation: measure.Isolation{ReadOnly: []string{shown}}})
	if !ok {
		return
	}
	_, sample := shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
	// The next command needs new namespaces, which cannot be arranged.
	require.NoError(t, os.Remove(shown))
	require.NoError(t, sandbox.Clean(t.Context()))
	for range 2 {
		_, err := sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/true"}})
		require.ErrorContains(t, err, "cannot be any more")
		require.ErrorContains(t, err, shown)
	}
	require.NoError(t, os.Mkdir(shown, 0o755))
	_, sample = shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
}
