package bench_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// accepts checks a rule with examples of both sorts.
func accepts(t *testing.T, check func(string) error, good, bad []string) {
	t.Helper()
	for _, s := range good {
		require.NoError(t, check(s), "%q", s)
	}
	for _, s := range bad {
		err := check(s)
		require.ErrorIs(t, err, bench.ErrInvalid, "%q", s)
		require.ErrorContains(t, err, strconv.Quote(s), "the message repeats what it refuses")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	accepts(t, func(s string) error { return bench.CheckName("project", s) },
		[]string{"a", "7", "go", "rust-perf", "a.b_c-d", "x--y", strings.Repeat("a", 64)},
		[]string{"", "Go", "-a", "a-", ".a", "a.", "a/b", "a b", "a\n", "\ta", "é", strings.Repeat("a", 65)})
	require.ErrorContains(t, bench.CheckName("pool", "A"), `pool "A"`, "the message says what the name is for")
}

func TestTags(t *testing.T) {
	t.Parallel()
	accepts(t, bench.CheckTag,
		[]string{"1", "1.26.1", "go1.27rc1", "v2.0.0+build.7", "c++", "0f3a9c", "A_b-C", strings.Repeat("f", 128)},
		[]string{"", "-v", ".1", "1.", "1-", "a/b", "a b", "a\n", "../x", "+1", strings.Repeat("f", 129)})
}

func TestParameters(t *testing.T) {
	t.Parallel()
	accepts(t, func(s string) error { return bench.CheckParameter("scenario", s) },
		[]string{"f", "full", "incr-patched:println", "incr-patched: add x", "Sum/8", "gcc-13.2+lto", strings.Repeat("x", 128)},
		[]string{"", " full", "full ", "full:", "full/", "a\tb", "a\nb", "a=b", `a"b`, "é", strings.Repeat("x", 129)})
	require.ErrorContains(t, bench.CheckParameter("backend", "="), "backend")
}

func TestTargets(t *testing.T) {
	t.Parallel()
	accepts(t, func(s string) error { _, err := bench.ParseTarget(s); return err },
		[]string{"x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "wasm32-wasi", "thumbv7em-none-eabi.hf", "a-b.1", "riscv64gc-unknown-linux-gnu"},
		[]string{"", "x86_64", "x86_64-", "-linux", "X86_64-linux", "a-b-c-d-e", "a--b", "a b-c", "a/b-c", "a-b\n", "a-" + strings.Repeat("b", 63)})

	target, err := bench.ParseTarget("aarch64-apple-darwin")
	require.NoError(t, err)
	require.Equal(t, "aarch64", target.Arch())
	require.Equal(t, "aarch64-apple-darwin", target.String())
}

func TestHostTarget(t *testing.T) {
	t.Parallel()
	for machine, want := range map[[2]string]bench.Target{
		{"linux", "amd64"}:   "x86_64-unknown-linux-gnu",
		{"linux", "arm64"}:   "aarch64-unknown-linux-gnu",
		{"linux", "386"}:     "i686-unknown-linux-gnu",
		{"linux", "riscv64"}: "riscv64gc-unknown-linux-gnu",
		{"darwin", "arm64"}:  "aarch64-apple-darwin",
		{"windows", "amd64"}: "x86_64-pc-windows-msvc",
	} {
		got, err := bench.HostTarget(machine[0], machine[1])
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = bench.ParseTarget(string(got))
		require.NoError(t, err)
	}
	for _, unknown := range [][2]string{{"linux", "mips"}, {"plan9", "amd64"}, {"", ""}} {
		_, err := bench.HostTarget(unknown[0], unknown[1])
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, unknown[0]+"/"+unknown[1])
		require.ErrorContains(t, err, "--target", "the message says what to do")
	}
}

func TestSizeClasses(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 96, bench.MaxSizeClass} {
		class, err := bench.NewSizeClass(n)
		require.NoError(t, err)
		require.Equal(t, bench.SizeClass(n), class)
	}
	for _, n := range []int{0, -1, bench.MaxSizeClass + 1} {
		_, err := bench.NewSizeClass(n)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, "1 to 4096")
	}
}

func TestEachPoolHasItsOwnTaskQueue(t *testing.T) {
	t.Parallel()
	pool, err := bench.NewPool(linux, 8, "ax102")
	require.NoError(t, err)
	require.Equal(t, bench.Pool{Target: linux, SizeClass: 8, Name: "ax102"}, pool)
	require.Equal(t, "bench/x86_64-unknown-linux-gnu/8/ax102", pool.TaskQueue())

	queues := map[string]bool{}
	for _, target := range []bench.Target{linux, "aarch64-apple-darwin"} {
		for _, class := range []bench.SizeClass{1, 11} {
			for _, name := range []string{"1", "11", "a-b"} {
				pool, err := bench.NewPool(target, class, name)
				require.NoError(t, err)
				queues[pool.TaskQueue()] = true
			}
		}
	}
	require.Len(t, queues, 12)
}

func TestInvalidPoolsAreRefused(t *testing.T) {
	t.Parallel()
	for part, wrong := range map[string]bench.Pool{
		"target":     {Target: "linux", SizeClass: 8, Name: "ax102"},
		"size class": {Target: linux, SizeClass: 0, Name: "ax102"},
		"pool":       {Target: linux, SizeClass: 8, Name: "a/b"},
	} {
		pool, err := bench.NewPool(wrong.Target, wrong.SizeClass, wrong.Name)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, part)
		require.Zero(t, pool)
	}
}
