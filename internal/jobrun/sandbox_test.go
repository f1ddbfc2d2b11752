//go:build linux

package jobrun_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// realSandbox returns a slot of this machine, below a directory that every user
// may enter.
func realSandbox(t *testing.T, user *measure.User) (*measure.Sandbox, string) {
	t.Helper()
	root, err := os.MkdirTemp("", "jobrun")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755))
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: filepath.Base(root), WorkDir: filepath.Join(root, "slot"), User: user, DisableCgroups: true, Isolation: measure.Isolation{Off: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })
	return sandbox, root
}

func TestAJobInTheRealSandbox(t *testing.T) {
	sandbox, root := realSandbox(t, nil)
	b := newBundle(t)
	b.machine.Sandbox, b.machine.CacheDir = sandbox, filepath.Join(root, "cache")
	b.machine.Readings = machine.NewReader(machine.Config{Root: "/", Now: time.Now})
	s := shellSuite{recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		r := suite.Recipe{Measure: sh(p, "cat made; echo out; echo err >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")}
		switch tc.Scenario {
		case "slow":
			r.Timeout, r.Measure = 100*time.Millisecond, sh(p, "sleep 1000 & sleep 1000")
		case "missing":
			r.Measure.Run = []string{"no-such-program-here"}
		}
		return r, nil
	}, preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		return suite.Preparation{Steps: []suite.Step{step(p, "echo made >made")}}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full", "gin/slow", "gin/missing")))
	require.Equal(t, bench.FailTimeout, b.sink.failure(t, "gin/slow").Kind)
	require.Equal(t, bench.FailJob, b.sink.failure(t, "gin/missing").Kind)
	collections := b.sink.results()["gin/full A"].Collections
	require.Len(t, collections, 2)
	for _, c := range collections {
		for _, metric := range []bench.Metric{bench.WallTime, bench.CPUTime, bench.MinorFaults} {
			require.Positive(t, c.Metrics[metric], metric)
		}
		require.Less(t, c.Metrics[bench.WallTime], c.Duration.Seconds())
		require.NotNil(t, c.Machine)
	}
	require.Contains(t, b.log.String(), "made\n")
}

func TestCommandsOfAnotherUserMayChangeWhatWasPreparedForThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("switching users needs root")
	}
	const nobody = 65534
	sandbox, root := realSandbox(t, &measure.User{UID: nobody, GID: nobody})
	b := newBundle(t)
	b.machine.Sandbox, b.machine.CacheDir = sandbox, filepath.Join(root, "cache")
	b.machine.Owner = &jobrun.Owner{UID: nobody, GID: nobody}
	b.suite = filepath.Join(root, "suite")
	require.NoError(t, os.MkdirAll(filepath.Join(b.suite, "files"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.suite, "files", "f"), nil, 0o600))
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{
			Prepare: []suite.Step{workStep(p, "id -u >f; mkdir d")},
			Before:  []suite.Step{{Write: &suite.FileText{File: filepath.Join(p.Work, "e", "written"), Text: "x"}}},
			Measure: sh(p, `cat f; echo more >>f; echo more >>e/written; touch d/x e/y "$CACHE/z" "$TMPDIR/t"`),
		}, nil
	}, preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		return suite.Preparation{Files: "files", Hardlink: []string{"linked"}, Steps: []suite.Step{step(p, "echo >f; mkdir linked; touch linked/x")}}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Len(t, b.sink.results()["gin/full A"].Collections, 2, b.log.String())
	require.Contains(t, b.log.String(), fmt.Sprintf("\n%d\n", nobody))
}

func TestAFullDiskIsTheMachinesFailureNotTheJobs(t *testing.T) {
	for name, preparation := range map[string]suite.Preparation{
		"while copying": {Files: "files"},
		"in a command":  {Steps: []suite.Step{{Run: []string{"sh", "-c", "head -c 1000000 /dev/zero >big"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBundle(t)
			if err := syscall.Mount("tmpfs", b.sandbox.dir, "tmpfs", 0, "size=256k"); err != nil {
				t.Skipf("mounting a small file system: %v", err)
			}
			t.Cleanup(func() { require.NoError(t, syscall.Unmount(b.sandbox.dir, 0)) })
			require.NoError(t, os.MkdirAll(filepath.Join(b.suite, "files"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(b.suite, "files", "big"), make([]byte, 1e6), 0o644))
			s := measuring("true")
			s.preparation = func(suite.Variant, suite.Paths) (suite.Preparation, error) { return preparation, nil }
			err := b.run(t, b.job(t, s, "gin/full"))
			require.ErrorContains(t, err, "the disk of "+b.sandbox.dir+" is full; free space there")
			require.Empty(t, b.sink.blocks)
		})
	}
}

const localSuite = `
name: local
artifact: {provider: directory, parameters: {path: "%s/{tag}"}}
iterations: 3
procedures:
  runtime:
    measure: {run: [sh, "${artifact}/program"], sizes: {"size:out": "${work}/out"}}
benchmarks:
  - {name: one, kind: runtime}
  - {name: two, kind: runtime}
`

func TestALocalRunComparesTwoArtifacts(t *testing.T) {
	sandbox, root := realSandbox(t, nil)
	for tag, script := range map[string]string{"v1": "echo 1 >out", "v2": "echo 22 >out"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "artifacts", tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "artifacts", tag, "program"), []byte(script), 0o644))
	}
	suiteDir := filepath.Join(root, "suite")
	require.NoError(t, os.MkdirAll(suiteDir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(suiteDir, suite.FileName),
		[]byte(fmt.Sprintf(localSuite, filepath.Join(root, "artifacts"))), 0o644))
	cache, err := artifact.Open(artifact.Options{Dir: filepath.Join(root, "artifact-cache"), Providers: []artifact.Provider{artifact.Directory{}}})
	require.NoError(t, err)

	var blocks int
	var last jobrun.Progress
	var log strings.Builder
	options := jobrun.LocalOptions{
		SuiteDir: suiteDir, Tags: []string{"v1", "v2", "v1"}, Artifacts: cache,
		Machine:  jobrun.Machine{Sandbox: sandbox, CacheDir: filepath.Join(root, "cache"), CPUs: 1, Now: time.Now, Log: &log},
		Progress: func(p jobrun.Progress) { last = p },
		Finished: func(jobrun.Block) { blocks++ },
	}
	results, err := jobrun.Local(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, 2, blocks)
	require.Equal(t, [2]int{2, 2}, [2]int{last.Done, last.Total})
	require.Equal(t, "v1#2", results.Subjects[2].Name)
	for subject, size := range map[string]float64{"v1": 2, "v2": 3, "v1#2": 2} {
		of := results.Of(subject)
		require.Len(t, of, 2, log.String())
		for _, result := range of {
			require.Len(t, result.Collections, 3, result.Failure)
			require.InDelta(t, size, result.Collections[0].Metrics["size:out"], 0)
		}
	}
	require.DirExists(t, filepath.Join(root, "cache", "local"))

	options.Tags = []string{"v9"}
	_, err = jobrun.Local(t.Context(), options)
	require.ErrorContains(t, err, "getting v9")
	options.Tags = nil
	_, err = jobrun.Local(t.Context(), options)
	require.ErrorIs(t, err, bench.ErrInvalid)
	options.Selection.Benchmarks = []string{"three"}
	_, err = jobrun.Local(t.Context(), options)
	require.ErrorContains(t, err, "three")
}

// Another process on the job's CPU is foreign CPU time, however busy the machine
// is besides.
func TestASpinningProcessOnTheJobsCPUDisturbsIt(t *testing.T) {
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	root := t.TempDir()
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: "spin", WorkDir: filepath.Join(root, "slot"), CPUs: measure.CPUList{cpu}, DisableCgroups: true, Isolation: measure.Isolation{Off: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })

	spinning := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, spinning.Start())
	t.Cleanup(func() {
		_ = spinning.Process.Kill()
		_ = spinning.Wait()
	})
	var one unix.CPUSet
	one.Set(cpu)
	require.NoError(t, unix.SchedSetaffinity(spinning.Process.Pid, &one))

	b := newBundle(t)
	b.machine.Sandbox, b.machine.CacheDir = sandbox, filepath.Join(root, "cache")
	b.machine.Readings = machine.NewReader(machine.Config{Root: "/", CPUs: []int{cpu}, Now: time.Now})
	s := measuring("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	s.iterations = 1
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	collections := b.sink.results()["gin/full A"].Collections
	require.Len(t, collections, 1)
	require.NotEmpty(t, collections[0].Disturbed, "%+v", collections[0].Machine)
	require.Equal(t, machine.ForeignCPU, collections[0].Disturbed[0].Cause)
	require.Contains(t, b.log.String(), "repeated: disturbed by foreign CPU time")
}
