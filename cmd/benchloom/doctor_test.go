package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/tune"
)

// A collector that starts restores what a killed 'doctor --tune' left, and leaves a
// complete tuning alone.
func TestACollectorRestoresAnInterruptedTuning(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}
	const watchdog = "proc/sys/kernel/nmi_watchdog"
	value := func() string {
		content, err := os.ReadFile(filepath.Join(root, watchdog))
		require.NoError(t, err)
		return string(content)
	}
	write("sys/devices/system/cpu/online", "0-1\n")
	write(watchdog, "1\n")
	tuner := newTuner(tune.Machine{Root: root})
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))

	restoreInterrupted(t.Context(), tuner, log)
	_, err := tuner.Tune(t.Context())
	require.NoError(t, err)
	restoreInterrupted(t.Context(), tuner, log)
	require.Equal(t, "0\n", value())
	require.Empty(t, text.String())

	// What a kill between two changes leaves.
	journal := filepath.Join(root, tune.Dir, "original-settings.json")
	content, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journal, bytes.ReplaceAll(content, []byte(`"complete": true`), []byte(`"complete": false`)), 0o644))
	broken := tuner
	broken.Open = func(string) tune.Setting { return stuck{} }
	restoreInterrupted(t.Context(), broken, log)
	require.Contains(t, text.String(), "run 'benchloom doctor --restore' as root")
	require.Equal(t, "0\n", value())
	restoreInterrupted(t.Context(), tuner, log)
	require.Contains(t, text.String(), "restored the machine's settings after an interrupted tuning")
	require.Equal(t, "1\n", value())
}

// stuck is a setting that cannot be written.
type stuck struct{ tune.Setting }

func (stuck) Read() (string, error) { return "0\n", nil }
func (stuck) Write(string) error    { return errors.New("refused") }
