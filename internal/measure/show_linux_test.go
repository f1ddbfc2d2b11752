package measure_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

func read(dirs ...string) measure.Shown { return measure.Shown{ReadOnly: dirs} }

// Artifacts may lie in /tmp, of which commands have their own, or where their account cannot enter.
func TestACommandSeesWhatItIsShown(t *testing.T) {
	t.Parallel()
	closed, hidden := t.TempDir(), t.TempDir()
	builds := filepath.Join(closed, "builds")
	for _, dir := range []string{filepath.Join(builds, "1.0"), filepath.Join(builds, "2.0"), filepath.Join(hidden, "tokens"), filepath.Join(hidden, "artifacts", "3.0")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)), 0o644))
	}
	require.NoError(t, os.Symlink(filepath.Join(builds, "2.0"), filepath.Join(builds, "newest")))
	sandbox, ok := isolated(t, measure.SandboxConfig{Isolation: measure.Isolation{
		Closed: []string{closed, "/no/such/path"}, Hidden: []string{hidden}, ReadOnly: []string{filepath.Join(hidden, "artifacts")},
	}})
	if !ok {
		return
	}
	look := func() string {
		output, _ := shell(t, sandbox, "cd "+builds+" 2>/dev/null && for d in *; do cat $d/file; echo x >$d/new; done; cat "+hidden+"/artifacts/*/file")
		return output
	}
	require.Equal(t, "3.0", look())
	require.NoError(t, sandbox.Show(read(filepath.Join(builds, "1.0"), filepath.Join(hidden, "artifacts", "3.0"))))
	require.Regexp(t, `^1\.0.*cannot create 1\.0/new.*\n3\.0$`, look())
	require.NoError(t, sandbox.Show(read(filepath.Join(builds, "newest"))))
	require.Regexp(t, `^2\.0.*cannot create 2\.0/new.*\n3\.0$`, look())

	var refused *measure.HiddenError
	require.ErrorAs(t, sandbox.Show(read(filepath.Join(hidden, "tokens"))), &refused)
	require.ErrorContains(t, refused, "which is hidden from benchmarks: move it elsewhere")

	// Clean hides what was shown.
	require.NoError(t, sandbox.Clean(t.Context()))
	require.Equal(t, "3.0", look())

	// What was shown and is gone costs the next command nothing else.
	require.NoError(t, sandbox.Clean(t.Context()))
	require.NoError(t, os.RemoveAll(builds))
	require.Equal(t, "3.0", look())
	require.Error(t, sandbox.Show(read(builds)))
	require.NoError(t, sandbox.Show(measure.Shown{}))
	require.Equal(t, "3.0", look())
}

// The files of one job that outlive it are not those of the next: its commands may be somebody else's.
func TestACommandChangesOnlyTheDirectoriesOfItsJob(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	one, other := filepath.Join(state, "caches", "one"), filepath.Join(state, "caches", "other")
	for _, dir := range []string{one, other} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)), 0o644))
	}
	sandbox, ok := isolated(t, measure.SandboxConfig{WorkDir: filepath.Join(state, "work"), Isolation: measure.Isolation{Hidden: []string{state}}})
	if !ok {
		return
	}
	plant := func() string {
		output, _ := shell(t, sandbox, "for d in "+one+" "+other+"; do cat $d/file && echo planted >>$d/file; done 2>/dev/null; ls "+state+"; rm -rf "+one+"/file "+other+" 2>/dev/null; true")
		return output
	}
	require.NoError(t, sandbox.Show(measure.Shown{Writable: []string{one}}))
	require.Equal(t, "onecaches\nwork\n", plant())
	require.NoFileExists(t, filepath.Join(one, "file"))

	// Nor does a job that has none see that of the last.
	require.NoError(t, sandbox.Clean(t.Context()))
	require.NoError(t, sandbox.Show(measure.Shown{}))
	require.Equal(t, "work\n", plant())
	text, err := os.ReadFile(filepath.Join(other, "file"))
	require.NoError(t, err)
	require.Equal(t, "other", string(text))
}

// The init process of the next job starts at the end of the last one.
func TestASlotIsReadyBeforeItsNextJob(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	first := sandbox.InitPID()
	require.NoError(t, sandbox.Clean(t.Context()))
	require.NoError(t, sandbox.Show(measure.Shown{}))
	require.NotEqual(t, first, sandbox.InitPID(), "what commands see is arranged for each job")
	output, _ := shell(t, sandbox, "echo left >/tmp/file; cat /tmp/file")
	require.Equal(t, "left\n", output)

	ready := false
	for range 20 { // a busy machine may take longer than the second for which it counts
		require.NoError(t, sandbox.Clean(t.Context()))
		ahead := sandbox.AheadPID()
		require.NoError(t, sandbox.Show(measure.Shown{}))
		if ready = sandbox.InitPID() == ahead; ready {
			break
		}
	}
	require.True(t, ready, "after a job that is shown nothing, it is arranged for one like it")

	require.NoError(t, sandbox.Show(read(t.TempDir())))
	require.NoError(t, sandbox.Clean(t.Context()))
	ahead := sandbox.AheadPID()
	require.Positive(t, ahead)
	require.NoError(t, sandbox.Clean(t.Context()))
	require.Equal(t, ahead, sandbox.AheadPID())
	require.NoError(t, sandbox.Show(read(t.TempDir())))
	require.Equal(t, ahead, sandbox.InitPID(), "after one that is shown files, it is arranged when it is known for what")
	output, _ = shell(t, sandbox, "cat /tmp/file 2>/dev/null || echo gone; readlink /proc/self/ns/net")
	require.Contains(t, output, "gone\n")
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.NotContains(t, output, own, "commands of a later space have no network either")

	// One that has ended meanwhile is replaced; a file system that was mounted meanwhile is there.
	require.NoError(t, sandbox.Clean(t.Context()))
	ahead = sandbox.AheadPID()
	require.NoError(t, unix.Kill(ahead, unix.SIGKILL))
	_, sample := shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
	require.NotEqual(t, ahead, sandbox.InitPID())

	// A job that comes much later sees the machine as it is then.
	require.NoError(t, sandbox.Clean(t.Context()))
	ahead = sandbox.AheadPID()
	require.Eventually(t, func() bool { return sandbox.AheadPID() != ahead }, 20*time.Second, 50*time.Millisecond)
	require.Error(t, unix.Kill(ahead, 0))
	ahead = sandbox.AheadPID()
	require.NoError(t, sandbox.Show(measure.Shown{}))
	require.Equal(t, ahead, sandbox.InitPID())

	mounted := t.TempDir()
	require.NoError(t, sandbox.Clean(t.Context()))
	require.NoError(t, unix.Mount("tmpfs", mounted, "tmpfs", 0, ""))
	defer func() { require.NoError(t, unix.Unmount(mounted, unix.MNT_DETACH)) }()
	require.NoError(t, os.WriteFile(filepath.Join(mounted, "file"), []byte("mounted"), 0o644))
	require.NoError(t, sandbox.Show(read(mounted)))
	output, _ = shell(t, sandbox, "cat "+mounted+"/file")
	require.Equal(t, "mounted", output)
}

func TestASlotWhoseNamespacesCannotBeLeftGoesOn(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	if !ok {
		return
	}
	_, sample := shell(t, sandbox, "echo left >/tmp/file")
	require.True(t, sample.Succeeded())
	sandbox.LockSpace()
	require.NoError(t, sandbox.Clean(t.Context()))
	output, sample := shell(t, sandbox, "cat /tmp/file 2>/dev/null || echo gone; readlink /proc/self/ns/net")
	require.True(t, sample.Succeeded())
	require.Contains(t, output, "gone\n")
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.NotContains(t, output, own, "commands are isolated as before")
}
