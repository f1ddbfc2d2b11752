package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Only what the kernel makes is read without the scheduler's knowledge.
func TestOtherFilesMayTakeLong(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "stat")
	require.NoError(t, os.WriteFile(plain, []byte("cpu 1 2 3 4\n"), 0o600))
	for path, kernel := range map[string]bool{"/proc/version": true, plain: false} {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := os.Open(path)
		require.NoError(t, err)
		k := keep(file)
		require.Equal(t, kernel, k.kernel, path)
		got := make([]byte, 2*len(want))
		for range 2 { // anew for each reading from the beginning
			n, err := k.readAt(got, 0)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got[:n]))
			n, err = k.readAt(got, int64(n))
			require.NoError(t, err)
			require.Zero(t, n, "there is no more")
		}
		n, err := k.readAt(nil, 0)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, k.Close())
	}
}

func TestAFileOfTheKernelMayNotBeReadable(t *testing.T) {
	t.Parallel()
	file, err := os.OpenFile("/proc/self/comm", os.O_WRONLY, 0)
	require.NoError(t, err)
	k := keep(file)
	require.True(t, k.kernel)
	_, err = k.readAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, unix.EBADF)
	require.NoError(t, k.Close())
}
