package devstack

import (
	"context"
	"io/fs"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A port that was chosen is not chosen again before its process can listen.
func TestAPortIsClaimedForSomeMinutes(t *testing.T) {
	t.Parallel()
	file, now := filepath.Join(t.TempDir(), "20000"), time.Now()
	require.NoError(t, claim(file, now))
	require.ErrorIs(t, claim(file, now), fs.ErrExist)
	require.NoError(t, claim(file, now.Add(claimed+time.Minute)), "the claim has expired")
}

func TestFreePortsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 200 {
		port, err := FreePort("127.0.0.1")
		require.NoError(t, err)
		require.False(t, seen[port], "port %d is returned twice", port)
		seen[port] = true
	}
}

// Processes with a TMPDIR of their own claim the same ports as others.
func TestClaimsAreSharedWhateverTMPDIRIs(t *testing.T) {
	before := sharedDir()
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, before, sharedDir())
}

// A socket of ours may live on for a moment in a process that is being started.
func TestAPortThatIsGivenUpIsFree(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	closed := make(chan error, 1)
	time.AfterFunc(2*portPause, func() { closed <- listener.Close() })
	require.NoError(t, CheckPort(t.Context(), "the API", address))
	require.NoError(t, <-closed)
}

func TestAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	address := listener.Addr().String()
	require.Equal(t, &PortTakenError{What: "the API", Address: address}, CheckPort(t.Context(), "the API", address))

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, CheckPort(ended, "the API", address), context.Canceled)
}
