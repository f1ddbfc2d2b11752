//go:build linux

package jobrun

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asNobody runs the calling test again as an unprivileged user if this process
// is root, for whom no directory is read-only. It returns false in the process
// that must do nothing.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("", "jobrun")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o777))
	binary := filepath.Join(dir, "jobrun.test")
	self, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer self.Close()
	target, err := os.OpenFile(binary, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(target, self)
	require.NoError(t, err)
	require.NoError(t, target.Close())
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = []string{"TMPDIR=" + dir}, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

func TestReadOnlyTreesAreCopiedWritableAndDeleted(t *testing.T) {
	if !asNobody(t) {
		return
	}
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	require.NoError(t, os.MkdirAll(filepath.Join(from, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "a", "b", "f"), []byte("x"), 0o444))
	require.NoError(t, os.WriteFile(filepath.Join(from, "a", "tool"), []byte("x"), 0o555))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(from, "a", "dangling")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(from, "a", "pipe"), 0o644))
	old := time.Unix(1e9, 5e8)
	require.NoError(t, os.Chtimes(filepath.Join(from, "a", "b", "f"), old, old))
	require.NoError(t, os.Chtimes(filepath.Join(from, "a", "b"), old, old))
	for _, dir := range []string{"a/b", "a"} {
		require.NoError(t, os.Chmod(filepath.Join(from, dir), 0o555))
	}

	for range 2 { // the second time over the first
		require.NoError(t, copier{}.tree(t.Context(), from, to))
	}
	for name, mode := range map[string]os.FileMode{"a": 0o755, "a/b": 0o755, "a/b/f": 0o644, "a/tool": 0o755} {
		info, err := os.Lstat(filepath.Join(to, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	for _, name := range []string{"a/b/f", "a/b"} {
		info, err := os.Stat(filepath.Join(to, name))
		require.NoError(t, err)
		require.True(t, info.ModTime().Equal(old), name)
	}
	link, err := os.Readlink(filepath.Join(to, "a", "dangling"))
	require.NoError(t, err)
	require.Equal(t, "/nowhere", link)
	require.NoFileExists(t, filepath.Join(to, "a", "pipe"))

	require.Error(t, os.RemoveAll(from), "without help it cannot be deleted")
	require.NoError(t, removeTree(from))
	require.NoDirExists(t, from)
	require.NoError(t, removeTree(from), "absent is fine")
}

func TestACopyReplacesLinksInsteadOfWritingThroughThem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	from, to, victim := filepath.Join(root, "from"), filepath.Join(root, "to"), filepath.Join(root, "victim")
	for _, dir := range []string{filepath.Join(from, "d"), to, victim} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(from, "d", "f"), []byte("new"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(from, "g"), []byte("new"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(victim, "f"), []byte("old"), 0o644))
	require.NoError(t, os.Symlink(victim, filepath.Join(to, "d")))
	require.NoError(t, os.Symlink(filepath.Join(victim, "f"), filepath.Join(to, "g")))

	require.NoError(t, copier{}.tree(t.Context(), from, to))
	text, err := os.ReadFile(filepath.Join(victim, "f"))
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	for _, name := range []string{"d/f", "g"} {
		text, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		require.Equal(t, "new", string(text))
	}
	// A tree that was replaced by a link is not followed either.
	require.ErrorContains(t, copier{}.tree(t.Context(), filepath.Join(root, "gone"), to), "no such file")
	require.NoError(t, os.Symlink(victim, filepath.Join(root, "link")))
	require.ErrorContains(t, copier{}.tree(t.Context(), filepath.Join(root, "link"), to), "not a directory")
}
