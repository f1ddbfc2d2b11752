package suite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

const profiling = `
name: one
artifact: {provider: directory}
timeouts: {measure: 90s}
procedures:
  runtime:
    measure: {run: ["${work}/x", "${flags}"], dir: sub, env: {A: "1"}, sizes: {"size:x": x}}
    vars: {flags: [-a, "-b=${benchmark}"]}
    profilers:
      cpu: {run: ["${measured}", "-cpuprofile=${profile_file}"], env: {B: "2"}, format: pprof, type: cpu}
      perf: {run: [own-perf, "${measured}"], file: "out/*.txt", format: folded, timeout: 3m}
benchmarks: [{name: prog}]
`

func TestAProfilerWrapsTheMeasuredCommand(t *testing.T) {
	t.Parallel()
	s, err := suite.Parse([]byte(profiling))
	require.NoError(t, err)
	require.Equal(t, []string{"cachegrind", "callgrind", "cpu", "dhat", "perf"}, s.Profilers("prog"))
	tc := bench.TestCase{Benchmark: "prog", Target: linux}

	p, err := s.Profiling(tc, "cpu", testPaths())
	require.NoError(t, err)
	require.Equal(t, suite.Profiling{
		Profiler: "cpu", Format: "pprof", Type: "cpu", File: "/w/benchloom-profile", Timeout: 90 * time.Second,
		Measure: suite.Measurement{Run: []string{"/w/x", "-a", "-b=prog", "-cpuprofile=/w/benchloom-profile"}, Dir: "/w/sub", Env: []string{"A=1", "B=2"}},
	}, p)

	p, err = s.Profiling(tc, "perf", testPaths())
	require.NoError(t, err)
	require.Equal(t, []any{[]string{"own-perf", "/w/x", "-a", "-b=prog"}, "/w/out/*.txt", 3 * time.Minute}, []any{p.Measure.Run, p.File, p.Timeout}, "the suite's own")
	program, err := s.ProfilerProgram(tc, "perf")
	require.NoError(t, err)
	require.Zero(t, program)

	p, err = s.Profiling(tc, "callgrind", testPaths())
	require.NoError(t, err)
	require.Equal(t, []string{"valgrind", "--tool=callgrind", "--callgrind-out-file=/w/benchloom-profile", "--", "/w/x", "-a", "-b=prog"}, p.Measure.Run)
	program, err = s.ProfilerProgram(tc, "callgrind")
	require.NoError(t, err)
	require.Equal(t, "valgrind", program.Package)

	_, err = s.Profiling(tc, "vtune", testPaths())
	require.ErrorIs(t, err, bench.ErrInvalid)
}

func TestMistakesInProfilersAreNamed(t *testing.T) {
	t.Parallel()
	for profiler, want := range map[string]string{
		`{run: ["${measured}"], format: pprof}`:                                              "run does not name ${profile_file}",
		`{run: [x, "${profile_file}"], format: elf}`:                                         `format "elf" is unknown`,
		`{run: [x, "${profile_file}"], format: pprof, type: "a;b"}`:                          `type of samples "a;b"`,
		`{run: [x, "${profile_file}"]}`:                                                      `the key "format" is missing`,
		`{run: [x], file: out, convert: [cat, out], format: pprof}`:                          "file and convert exclude each other",
		`{run: [x], file: /etc/passwd, format: pprof}`:                                       "a profiler writes below ${work}",
		`{run: [x, "${profile_file}", "${nothing}"], format: pprof}`:                         "unknown variable ${nothing}",
		`{run: ["${profile_file}"], program: vtune, format: pprof}`:                          `program "vtune" is unknown; use perf, valgrind`,
		`{run: [x, "${profile_file}"], format: pprof, requires: [{command: y, reason: ""}]}`: "the reason is empty",
	} {
		_, err := suite.Parse([]byte("name: one\nartifact: {provider: directory}\nprocedures:\n  runtime:\n    measure: {run: [x]}\n    profilers: {p: " + profiler + "}\nbenchmarks: [{name: prog}]\n"))
		require.ErrorContains(t, err, want, profiler)
	}
	_, err := suite.Parse([]byte("name: one\nartifact: {provider: directory}\nvars: {measured: x}\nprocedures:\n  runtime:\n    measure: {run: [x]}\nbenchmarks: [{name: prog}]\n"))
	require.ErrorContains(t, err, "the variable ${measured} is built in")
}
