package accounts_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/accounts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// directory is a list of users that does not outlive the test.
type directory struct {
	users  map[string]accounts.Account
	refuse error
}

func (d *directory) Lookup(name string) (accounts.Account, bool, error) {
	a, ok := d.users[name]
	return a, ok, nil
}

func (d *directory) Create(_ context.Context, name string) error {
	if d.refuse != nil {
		return d.refuse
	}
	id := uint32(900 + len(d.users))
	d.users[name] = accounts.Account{Name: name, UID: id, GID: id}
	return nil
}

func pool(t *testing.T) (accounts.Pool, *directory) {
	t.Helper()
	d := &directory{users: make(map[string]accounts.Account)}
	return accounts.Pool{Locks: filepath.Join(t.TempDir(), "locks"), Directory: d}, d
}

func TestSetupMakesWhatIsMissingOnce(t *testing.T) {
	t.Parallel()
	p, d := pool(t)
	made, err := p.Setup(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []accounts.Account{{"benchloom-1", 900, 900}, {"benchloom-2", 901, 901}}, made)
	made, err = p.Setup(t.Context(), 2)
	require.NoError(t, err)
	require.Empty(t, made)
	made, err = p.Setup(t.Context(), 3)
	require.NoError(t, err)
	require.Len(t, made, 1)
	all, err := p.All()
	require.NoError(t, err)
	require.Len(t, all, 3)

	d.refuse = errors.New("the list of users is read only")
	_, err = p.Setup(t.Context(), 4)
	require.ErrorContains(t, err, "making account benchloom-4: the list of users is read only")
	for _, n := range []int{0, -1, accounts.Most + 1} {
		_, err = p.Setup(t.Context(), n)
		require.ErrorContains(t, err, "1 to 256 are possible")
	}
}

func TestNoTwoCollectorsShareAnAccount(t *testing.T) {
	t.Parallel()
	p, _ := pool(t)
	_, err := p.Take(t.Context(), "")
	require.ErrorIs(t, err, accounts.ErrNone)
	_, err = p.Setup(t.Context(), 2)
	require.NoError(t, err)

	second, err := p.Take(t.Context(), "benchloom-2")
	require.NoError(t, err)
	require.Equal(t, "benchloom-2", second.Name)
	first, err := p.Take(t.Context(), "benchloom-2")
	require.NoError(t, err)
	require.Equal(t, "benchloom-1", first.Name, "the preferred one is taken")
	_, err = p.Take(t.Context(), "")
	require.ErrorIs(t, err, accounts.ErrTaken)
	require.EqualError(t, err, "2 accounts for benchmarks: all are in use by another collector")
	_, err = p.Use("benchloom-1")
	require.ErrorIs(t, err, accounts.ErrTaken)

	require.NoError(t, second.Release())
	again, err := p.Take(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "benchloom-2", again.Name)
	require.NoError(t, again.Release())
	require.NoError(t, first.Release())
}

func TestAProcessReservesAccountsForItsChildren(t *testing.T) {
	t.Parallel()
	p, _ := pool(t)
	leases, made, err := p.Reserve(t.Context(), 2, nil)
	require.NoError(t, err)
	require.Len(t, made, 2)
	require.Equal(t, []string{"benchloom-1", "benchloom-2"}, []string{leases[0].Name, leases[1].Name})

	child, err := p.Use("benchloom-2")
	require.NoError(t, err, "the parent's reservation is for it")
	_, err = p.Use("benchloom-2")
	require.ErrorIs(t, err, accounts.ErrTaken)
	_, err = p.Take(t.Context(), "benchloom-1")
	require.ErrorIs(t, err, accounts.ErrTaken, "others do not get what is reserved")

	others, made, err := p.Reserve(t.Context(), 1, []string{"benchloom-1"})
	require.NoError(t, err)
	require.Equal(t, "benchloom-3", others[0].Name)
	require.Len(t, made, 1)
	require.NoError(t, child.Release())
	for _, l := range append(leases, others...) {
		require.NoError(t, l.Release())
	}
	leases, made, err = p.Reserve(t.Context(), 2, []string{"benchloom-3", "benchloom-9"})
	require.NoError(t, err)
	require.Empty(t, made, "accounts are used again")
	require.Equal(t, []string{"benchloom-3", "benchloom-1"}, []string{leases[0].Name, leases[1].Name})
	for _, l := range leases {
		require.NoError(t, l.Release())
	}
	_, err = p.Use("benchloom-9")
	require.ErrorIs(t, err, accounts.ErrNone)
}

func TestALeaseEndsWhatItsAccountLeftRunning(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return // no other account can be used
	}
	const uid = 64_321 // of nobody
	var left []*exec.Cmd
	for range 3 {
		c := exec.CommandContext(t.Context(), "/bin/sleep", "3600")
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		require.NoError(t, c.Start())
		left = append(left, c)
	}
	waited := make(chan error, len(left))
	for _, c := range left {
		go func() { waited <- c.Wait() }()
	}
	lease := &accounts.Lease{Account: accounts.Account{Name: "left", UID: uid, GID: uid}}
	killed, err := lease.EndProcesses(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, killed)
	for range left {
		require.ErrorContains(t, <-waited, "killed")
	}
	killed, err = lease.EndProcesses(t.Context())
	require.NoError(t, err)
	require.Zero(t, killed)
}

func TestADirectoryAboveMayBlockAnAccount(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "c")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for path := root; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		require.NoError(t, os.Chmod(path, 0o755))
	}
	other := accounts.Account{Name: "other", UID: 64_322, GID: 64_322}
	blocked, err := other.Blocked(dir)
	require.NoError(t, err)
	require.Empty(t, blocked)
	for _, name := range []string{"a/b/c", "a/b", "a"} {
		require.NoError(t, os.Chmod(filepath.Join(root, name), 0o700))
		blocked, err = other.Blocked(dir)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(root, name), blocked, "the outermost one")
	}
	own := accounts.Account{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	blocked, err = own.Blocked(dir)
	require.NoError(t, err)
	require.Empty(t, blocked)
	_, err = own.Blocked(filepath.Join(root, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestATreeIsGivenToAnAccountOnce(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o555))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	account := accounts.Account{Name: "other", UID: 64_323, GID: 64_323}
	require.NoError(t, account.Give(dir))
	for _, name := range []string{"", "sub", "link"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, account.UID, info.Sys().(*syscall.Stat_t).Uid, name)
	}
	info, err := os.Stat("/etc/passwd")
	require.NoError(t, err)
	require.Zero(t, info.Sys().(*syscall.Stat_t).Uid, "links are not followed")
	require.NoError(t, os.Chown(filepath.Join(dir, "sub"), 0, 0))
	require.NoError(t, account.Give(dir))
	info, err = os.Stat(filepath.Join(dir, "sub"))
	require.NoError(t, err)
	require.Zero(t, info.Sys().(*syscall.Stat_t).Uid, "the directory is the account's already")
}
