package measure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

// avoid keeps off a CPU. It prints the CPUs of each of its threads, older and newer ones, and of a command in a sandbox that has the CPU.
func avoid(cpu, dir string) error {
	cpus, err := measure.ParseCPUList(cpu)
	if err != nil {
		return err
	}
	hold := make(chan struct{})
	defer close(hold)
	// occupy keeps threads in use.
	occupy := func() {
		for range 4 {
			running := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				close(running)
				<-hold
			}()
			<-running
		}
	}
	occupy()
	kept, err := measure.Avoid(cpus)
	if err != nil {
		return err
	}
	fmt.Println("kept off:", kept)
	occupy()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:")
		fmt.Println("thread:", strings.Fields(list)[0])
	}
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: "avoid", WorkDir: dir, CPUs: cpus, DisableCgroups: true, Isolation: measure.Isolation{Off: true},
	})
	if err != nil {
		return err
	}
	_, err = sandbox.Run(context.Background(), measure.Command{
		Argv: []string{"sed", "-n", "s/^Cpus_allowed_list:/command:/p", "/proc/self/status"}, Env: measure.BaseEnv(dir, dir), Output: os.Stdout,
	})
	return errors.Join(err, sandbox.Close())
}

// What is recorded beside benchmarks is no work of their CPUs.
func TestAProcessKeepsOffTheCPUsOfItsBenchmarks(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("this process may use one CPU only")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "0", t.TempDir())
	child.Env = append(os.Environ(), helperVariable+"=avoid")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "kept off: true\n")
	threads := 0
	for line := range strings.Lines(string(out)) {
		list, is := strings.CutPrefix(strings.TrimSpace(line), "thread: ")
		if !is {
			continue
		}
		threads++
		cpus, err := measure.ParseCPUList(list)
		require.NoError(t, err)
		require.NotContains(t, []int(cpus), 0)
	}
	require.GreaterOrEqual(t, threads, 8)
	require.Contains(t, string(out), "command:\t0\n", "its benchmarks have the CPU nevertheless")
}

func TestAProcessWithoutOtherCPUsStays(t *testing.T) {
	t.Parallel()
	all := make([]int, 4096)
	for n := range all {
		all[n] = n
	}
	every, err := measure.NewCPUList(all...)
	require.NoError(t, err)
	kept, err := measure.Avoid(every)
	require.NoError(t, err)
	require.False(t, kept)
	kept, err = measure.Avoid(nil)
	require.NoError(t, err)
	require.False(t, kept)
}
