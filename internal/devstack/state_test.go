//go:build linux || darwin

package devstack_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
)

func TestStateDirectoryIsPrivateAndHeldByOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "state")
	state, err := devstack.OpenState(dir)
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	// The holder is named to whoever comes second.
	_, err = devstack.OpenState(dir)
	var held *devstack.AlreadyRunningError
	require.ErrorAs(t, err, &held)
	require.Equal(t, devstack.AlreadyRunningError{Dir: dir, PID: os.Getpid()}, *held)

	// Once it is closed the next one gets it.
	require.NoError(t, state.Close())
	state, err = devstack.OpenState(dir)
	require.NoError(t, err)
	require.NoError(t, state.Close())
}

func TestStateDirectoryThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		version string
		want    string
	}{
		{"newer", "2\n", "has version 2, this program knows up to 1"},
		{"foreign", "hello\n", "this is no state directory"},
	} {
		dir := filepath.Join(t.TempDir(), test.name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "version"), []byte(test.version), 0o600))
		_, err := devstack.OpenState(dir)
		require.ErrorContains(t, err, test.want)
		require.Equal(t, test.name == "newer", errors.Is(err, devstack.ErrStateTooNew))
	}

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := devstack.OpenState(filepath.Join(file, "state"))
	require.ErrorContains(t, err, "make it writable for this user")
}

func TestTokensAreCreatedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	state := openState(t, dir)
	admin, err := state.Token("admin")
	require.NoError(t, err)
	require.Regexp(t, `^blm_[A-Za-z0-9_-]{43}$`, admin) // 32 bytes

	again, err := state.Token("admin")
	require.NoError(t, err)
	require.Equal(t, admin, again)
	read, err := devstack.ReadToken(dir, "admin")
	require.NoError(t, err)
	require.Equal(t, admin, read)
	other, err := state.Token("collector-1")
	require.NoError(t, err)
	require.NotEqual(t, admin, other)

	info, err := os.Stat(filepath.Join(dir, "tokens", "admin"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = state.Token("../admin")
	require.ErrorContains(t, err, "not allowed")
	_, err = devstack.ReadToken(dir, "absent")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestClientsFindTheRunningStack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	_, err := devstack.ReadUp(dir)
	require.ErrorIs(t, err, devstack.ErrNotRunning)

	state := openState(t, dir)
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	up := devstack.Up{Addresses: map[string]string{"api": "http://127.0.0.1:1"}, Processes: map[string]int{"api": 12}}
	require.NoError(t, state.WriteUp(up, now))
	found, err := devstack.ReadUp(dir)
	require.NoError(t, err)
	require.Equal(t, up.Addresses, found.Addresses)
	require.Equal(t, up.Processes, found.Processes)
	require.Equal(t, os.Getpid(), found.PID)
	require.Equal(t, now, found.StartedAt)

	// A stack that was killed leaves its file; the number alone, which another
	// process may have by now, proves nothing.
	path := filepath.Join(dir, "up.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, state.Close())
	_, err = devstack.ReadUp(dir)
	require.ErrorIs(t, err, devstack.ErrNotRunning)
	text = regexp.MustCompile(`"started": "[^"]*"`).ReplaceAll(text, []byte(`"started": "earlier"`))
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err = devstack.ReadUp(dir)
	require.ErrorIs(t, err, devstack.ErrNotRunning)
}
