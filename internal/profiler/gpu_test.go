package profiler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

const (
	idleGPU = "GPU-18ef14e9-dec6-1d7e-1284-3010c6ce98b1"
	busyGPU = "GPU-96de99c9-d68f-84c8-424c-7c75e59cc0a0"
)

// smi is an nvidia-smi that prints what the test writes.
func smi() (gpus *profiler.GPUs, output *io.PipeWriter) {
	read, output := io.Pipe()
	return profiler.NewGPUs(func(context.Context) (io.ReadCloser, error) { return read, nil }, time.Now), output
}

// readings returns what was collected by metric and device.
func readings(t *testing.T, c profiler.Collector) map[string]float64 {
	t.Helper()
	collected, err := c.Collect(t.Context())
	require.NoError(t, err)
	all := map[string]float64{}
	for _, v := range collected.Values {
		require.False(t, v.Counter)
		all[fmt.Sprint(v.Metric, " ", v.Device)] = v.Value
	}
	return all
}

func TestGPUsAreReadFromTheLinesOfNvidiaSMI(t *testing.T) {
	bubble(t, func(t *testing.T) {
		printed, err := os.ReadFile("testdata/nvidia-smi.csv")
		require.NoError(t, err)
		gpus, output := smi()
		require.Empty(t, readings(t, gpus), "nothing was printed yet")
		_, err = output.Write(printed)
		require.NoError(t, err)
		synctest.Wait()
		const mebibyte = 1 << 20
		require.Equal(t, map[string]float64{
			"gpu_util " + idleGPU: 0.12, "gpu_memory_free " + idleGPU: 39821 * mebibyte,
			// It does not always report its utilisation.
			"gpu_memory_free " + busyGPU: 1204 * mebibyte,
		}, readings(t, gpus))

		// A program that has stopped printing tells nothing about the present.
		time.Sleep(time.Second + time.Millisecond)
		require.Empty(t, readings(t, gpus))
		_, err = io.WriteString(output, busyGPU+", 100, 0\n")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]float64{"gpu_util " + busyGPU: 1, "gpu_memory_free " + busyGPU: 0}, readings(t, gpus))
		require.NoError(t, gpus.Close())
	})
}

func TestAMachineWithoutGPUsIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		none := profiler.NewGPUs(func(context.Context) (io.ReadCloser, error) {
			return nil, fmt.Errorf("looking: %w", exec.ErrNotFound)
		}, time.Now)
		driverOnly, output := smi()
		synctest.Wait()
		for reason, gpus := range map[string]*profiler.GPUs{"this machine has no nvidia-smi": none, "nvidia-smi finds no GPU": driverOnly} {
			_, err := gpus.Collect(t.Context())
			require.NoError(t, err)
			if gpus == driverOnly {
				_, err := io.WriteString(output, "No devices were found\n")
				require.NoError(t, err)
				require.NoError(t, output.Close())
				synctest.Wait()
			}
			for range 3 {
				collected, err := gpus.Collect(t.Context())
				require.NoError(t, err)
				require.Empty(t, collected.Values)
				require.Equal(t, map[profiler.Metric]string{profiler.GPUUtil: reason, profiler.GPUMemoryFree: reason}, collected.Absent)
			}
			require.NoError(t, gpus.Close())
		}
	})
}

func TestABrokenNvidiaSMIIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for text, lines := range map[string]string{
			"nvidia-smi ended: EOF":   idleGPU + ", 0, 40333\n",
			"nvidia-smi printed \"NV": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
			"instead of uuid, util":   idleGPU + ", 0\n",
			"token too long":          string(make([]byte, 1<<20)),
		} {
			gpus, output := smi()
			require.Empty(t, readings(t, gpus))
			_, _ = io.WriteString(output, lines) // it is not read to its end
			require.NoError(t, output.Close())
			synctest.Wait()
			_, err := gpus.Collect(t.Context())
			require.ErrorContains(t, err, text)
			for range 3 {
				collected, err := gpus.Collect(t.Context())
				require.NoError(t, err)
				require.Empty(t, collected.Values)
				require.Contains(t, collected.Absent[profiler.GPUUtil], text)
			}
			require.NoError(t, gpus.Close())
		}
		broken := profiler.NewGPUs(func(context.Context) (io.ReadCloser, error) { return nil, errors.New("permission denied") }, time.Now)
		_, err := broken.Collect(t.Context())
		require.EqualError(t, err, "starting nvidia-smi: permission denied")
		_, err = broken.Collect(t.Context())
		require.NoError(t, err)
		require.NoError(t, broken.Close())
	})
}

// script writes a program.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755))
	return path
}

func TestNvidiaSMIIsAProgramThatEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	path := script(t, `while :; do cat testdata/nvidia-smi.csv; sleep 0.05; done`)
	var started io.ReadCloser
	gpus := profiler.NewGPUs(func(ctx context.Context) (_ io.ReadCloser, err error) {
		started, err = profiler.StartProgram(ctx, path)
		return started, err
	}, time.Now)
	for len(readings(t, gpus)) < 3 { // until its lines have been read
	}
	require.NoError(t, gpus.Close(), "it was killed, which is no failure")
	_, err := started.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestAProgramThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	path := script(t, `echo "couldn't communicate with the driver" >&2; exit 9`)
	output, err := profiler.StartProgram(t.Context(), path)
	require.NoError(t, err)
	_, err = io.ReadAll(output)
	require.NoError(t, err)
	require.EqualError(t, output.Close(), "exit status 9: couldn't communicate with the driver")
	require.Error(t, output.Close(), "closing again tells the same")

	_, err = profiler.StartProgram(t.Context(), filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
