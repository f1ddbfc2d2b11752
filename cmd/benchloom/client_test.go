package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The state directory's token is never sent to another machine.
func TestLocalTokenStaysLocal(t *testing.T) {
	t.Setenv("BENCHLOOM_TOKEN", "")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tokens"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens", "admin"), []byte("blm_secret\n"), 0o600))
	f := serviceFlags{stateDir: dir}
	for address, want := range map[string]string{
		"http://127.0.0.1:7480": "blm_secret", "http://localhost:7480": "blm_secret", "http://[::1]:7480": "blm_secret",
		"http://bench.example.com": "", "http://127.0.0.1.example.com": "", "http://10.0.0.1:7480": "", "://": "",
	} {
		token, err := f.token(address)
		require.NoError(t, err)
		require.Equal(t, want, token, address)
	}
}
