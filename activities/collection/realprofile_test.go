//go:build linux

package collection_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/flame"
)

// Programs that spend nine tenths of their time in the function "planted".
const (
	hotGo = `package main

import (
	"os"
	"runtime/pprof"
)

var sink uint64

//go:noinline
func planted(n int) {
	for i := range n {
		sink = sink*31 + uint64(i)
	}
}

//go:noinline
func innocent(n int) {
	for i := range n {
		sink = sink*37 + uint64(i)
	}
}

func main() {
	if len(os.Args) > 1 {
		f, err := os.Create(os.Args[1])
		if err != nil {
			panic(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			panic(err)
		}
		defer pprof.StopCPUProfile()
	}
	innocent(30_000_000)
	planted(300_000_000)
}
`
	hotC = `volatile unsigned long sink;
__attribute__((noinline)) void planted(long n) { for (long i = 0; i < n; i++) sink = sink * 31 + i; }
__attribute__((noinline)) void innocent(long n) { for (long i = 0; i < n; i++) sink = sink * 37 + i; }
int main(void) { innocent(200000); planted(2000000); return 0; }
`
)

// hoardC allocates memory.
const hoardC = `#include <stdlib.h>
__attribute__((noinline)) char *planted(int n) { char *p = malloc(n); p[0] = 1; return p; }
int main(void) { char *p = planted(1000000); return p[0] - 1; }
`

// The profilers that this machine has find the slow function: pprof everywhere, perf and callgrind where they are installed.
func TestLongProfilersFindThePlantedFunction(t *testing.T) {
	b := setup(t)
	at := filepath.Join(b.root, "artifacts", "v1")
	build := func(name, text string, argv ...string) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		command := exec.Command(argv[0], argv[1:]...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	installed := func(programs ...string) bool {
		for _, p := range programs {
			if _, err := exec.LookPath(p); err != nil {
				t.Logf("left out: %v", err)
				return false
			}
		}
		return true
	}
	build("main.go", hotGo, "go", "build", "-o", filepath.Join(at, "hot"), "main.go")
	find := func(benchmark, profiler, want string) (types []string) {
		job, err := bench.NewProfileJob("go", "v1", b.hash, bench.TestCase{Benchmark: benchmark, Target: target}, profiler)
		require.NoError(t, err)
		key := b.request(job)
		_, err = b.run(key, 1)
		require.NoError(t, err, profiler)
		stored := b.profiles(key)
		require.Len(t, stored, 1)
		digest, err := blobs.ParseDigest(stored[0].Digest)
		require.NoError(t, err)
		file, err := b.files.Get(t.Context(), digest)
		require.NoError(t, err)
		defer file.Close()
		p, err := flame.Parse(flame.Pprof, file)
		require.NoError(t, err)
		top, err := flame.Top(p, "")
		require.NoError(t, err)
		require.Equal(t, want, top.Functions[0].Name, profiler)
		return flame.Types(p)
	}
	find("hot", "pprof-cpu", "main.planted")
	if installed("perf") {
		types := find("hot", "perf", "main.planted")
		if _, err := os.Stat("/sys/bus/event_source/devices/cpu"); os.IsNotExist(err) {
			require.Contains(t, strings.Join(types, " "), "cpu-clock", "without hardware counters, the clock of the CPU is sampled")
		}
	}
	if installed("cc", "valgrind") {
		build("main.c", hotC, "cc", "-O1", "-g", "-o", filepath.Join(at, "hot-c"), "main.c")
		find("hot-c", "callgrind", "planted")
		build("main.c", hoardC, "cc", "-O1", "-g", "-fno-optimize-sibling-calls", "-o", filepath.Join(at, "hot-c"), "main.c")
		find("hot-c", "dhat", "malloc")
	}
}
