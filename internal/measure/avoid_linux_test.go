package measure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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

// lend lends CPU 0 of a sandbox. It prints the CPUs of all threads of this process but the launching one, and of the init
// process, before and after it runs a command.
func lend(cpu, dir string) error {
	cpus, err := measure.ParseCPUList(cpu)
	if err != nil {
		return err
	}
	if _, err := measure.Avoid(cpus); err != nil {
		return err
	}
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "lend", WorkDir: dir, CPUs: cpus, DisableCgroups: true, Lend: true})
	if err != nil {
		return err
	}
	ctx := context.Background()
	look := func(when string) {
		files, _ := filepath.Glob("/proc/self/task/*/status")
		children, _ := filepath.Glob("/proc/self/task/*/children")
		for _, file := range children {
			text, _ := os.ReadFile(file)
			for _, pid := range strings.Fields(string(text)) {
				of, _ := filepath.Glob("/proc/" + pid + "/task/*/status")
				files = append(files, of...)
			}
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:")
			fmt.Println(when, strings.Fields(list)[0])
		}
	}
	look("opened:")
	for range 2 {
		if err := sandbox.Clean(ctx); err != nil {
			return err
		}
		look("cleaned:")
		if err := sandbox.Show(measure.Shown{}); err != nil {
			return err
		}
		look("shown:")
		if _, err := sandbox.Run(ctx, measure.Command{
			Argv: []string{"sed", "-n", "s/^Cpus_allowed_list:/command:/p", "/proc/self/status"}, Env: measure.BaseEnv(dir, dir), Output: os.Stdout,
			Begin: func() { look("begins:") },
		}); err != nil {
			return err
		}
		look("run:")
	}
	if err := sandbox.Clean(ctx); err != nil {
		return err
	}
	time.Sleep(1500 * time.Millisecond)
	look("idle:")
	return sandbox.Close()
}

// The CPUs of an empty slot serve to hand in a job and to begin the next one. Nothing but commands uses them while there are
// commands.
func TestACollectorUsesTheCPUsOfAnEmptySlot(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("this process may use one CPU only")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "0", t.TempDir())
	child.Env = append(os.Environ(), helperVariable+"=lend")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	uses := map[string][]bool{} // of each thread: whether it may use CPU 0
	for line := range strings.Lines(string(out)) {
		when, list, found := strings.Cut(strings.TrimSpace(line), ":")
		require.True(t, found, line)
		cpus, err := measure.ParseCPUList(strings.TrimSpace(list))
		require.NoError(t, err)
		require.True(t, !slices.Contains(cpus, 0) || len(cpus) == 1, "those of the slot, or the others: %s", line)
		uses[when] = append(uses[when], slices.Contains(cpus, 0))
	}
	for when, threads := range uses {
		may := 0
		for _, one := range threads {
			if one {
				may++
			}
		}
		switch when {
		case "cleaned", "shown":
			require.Equal(t, len(threads), may, "%s\n%s", when, out)
		case "command":
			require.Equal(t, 2, may, "%s\n%s", when, out)
		case "begins", "run": // twice
			require.Equal(t, 2, may, "only the launching thread: %s\n%s", when, out)
		default:
			require.Equal(t, 1, may, "only the launching thread: %s\n%s", when, out)
		}
		require.NotEmpty(t, threads)
	}
	require.Len(t, uses, 7)
}

func TestOnlyCPUsThatAProcessKeepsOffCanBeLent(t *testing.T) {
	t.Parallel()
	cpus, err := measure.NewCPUList(0)
	require.NoError(t, err)
	_, err = measure.NewSandbox(measure.SandboxConfig{Name: "lend", WorkDir: t.TempDir(), CPUs: cpus, DisableCgroups: true, Lend: true})
	require.ErrorContains(t, err, "CPU 0 cannot be lent: this process does not keep off it")
}
