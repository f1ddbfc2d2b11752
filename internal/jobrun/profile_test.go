package jobrun_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/suite"
)

// profiled runs "echo measured" of benchmark prog under profiler p, which the YAML defines.
func profiled(t *testing.T, b *bundle, profiler string, keep func(string, []string) error) error {
	t.Helper()
	loaded, err := suite.Parse([]byte(`
name: one
artifact: {provider: directory}
timeouts: {measure: 5s}
procedures:
  runtime:
    measure: {run: [sh, -c, "echo measured >> ${suite}/journal"]}
    profilers:
      p: ` + profiler + `
benchmarks: [{name: prog}]
`))
	require.NoError(t, err)
	return b.run(t, jobrun.Job{
		Kind: bench.KindProfile, Subjects: []jobrun.Subject{b.artifact(t, "A")}, Suite: loaded, SuiteDir: b.suite,
		TestCases: []bench.TestCase{{Benchmark: "prog", Target: "x86_64-unknown-linux-gnu"}},
		Profile: &jobrun.Profile{Profiler: "p", Suite: loaded, Limit: 1 << 20, Keep: func(_ context.Context, files jobrun.ProfileFiles) error {
			var texts []string
			for _, f := range files.Files {
				text, err := io.ReadAll(f)
				require.NoError(t, err)
				texts = append(texts, string(text))
			}
			return keep(files.Format, texts)
		}},
	})
}

func TestATestCaseRunsOnceUnderAProfilerAfterAWarmUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profiler string
		format   string
		texts    []string
	}{
		"one file": {
			`{run: [sh, -c, 'echo profiler >> ${suite}/journal; f=$$1; shift; "$$@"; echo samples > $$f', sh, "${profile_file}", "${measured}"], format: folded}`,
			"folded", []string{"samples\n"},
		},
		"a file of each process": {
			`{run: [sh, -c, 'echo profiler >> ${suite}/journal; "$$@"; echo b > out.2; echo a > out.1', sh, "${measured}"], file: out.*, format: pprof}`,
			"pprof", []string{"a\n", "b\n"},
		},
		"converted": {
			`{run: [sh, -c, 'echo profiler >> ${suite}/journal; f=$$1; shift; "$$@"; echo raw > $$f', sh, "${profile_file}", "${measured}"], convert: [sed, s/raw/cooked/, "${profile_file}"], format: perf-script}`,
			"perf-script", []string{"cooked\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			var format string
			var got []string
			require.NoError(t, profiled(t, b, c.profiler, func(f string, texts []string) error { format, got = f, texts; return nil }))
			require.Equal(t, []any{c.format, c.texts}, []any{format, got})
			require.Equal(t, []string{"measured", "profiler", "measured"}, b.journal(t))
			require.Empty(t, b.sink.blocks, "a profile is no result")
			require.Equal(t, 1, b.sink.progress[len(b.sink.progress)-1].Done)
		})
	}
}

func TestAProfilerThatFailsIsTheFailureOfItsTestCase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profiler string
		kind     bench.FailureKind
		want     string
	}{
		"crashes":            {`{run: [sh, -c, "echo so sad; kill -SEGV $$$$", "${profile_file}"], format: folded}`, bench.FailJob, "under p"},
		"hangs":              {`{run: [sh, -c, "exec sleep 60", "${profile_file}"], timeout: 1s, format: folded}`, bench.FailTimeout, "killed after its time limit of 1s"},
		"writes without end": {`{run: [sh, -c, "cat /dev/zero > $$0", "${profile_file}"], timeout: 50s, format: folded}`, bench.FailPermanent, "its profile exceeded 1.0 MiB"},
		"leaves 5 GB":        {`{run: [truncate, --size=5G, "${profile_file}"], format: folded}`, bench.FailPermanent, "its profile exceeded 1.0 MiB"},
		"writes nothing":     {`{run: ["true", "${profile_file}"], format: folded}`, bench.FailJob, "wrote no profile"},
		"leaves a link":      {`{run: [ln, -s, /etc/passwd, "${profile_file}"], format: folded}`, bench.FailPermanent, "reading the profile"},
		"leaves a pipe":      {`{run: [mkfifo, "${profile_file}"], format: folded}`, bench.FailPermanent, "not a regular file"},
		"is not there":       {`{run: [no-such-profiler, "${profile_file}"], format: folded}`, bench.FailJob, "install it on this machine"},
		"is not possible":    {`{run: ["true", "${profile_file}"], format: folded, requires: [{run: ["false"], reason: only nightly has it}]}`, bench.FailPermanent, "only nightly has it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			require.NoError(t, profiled(t, b, c.profiler, func(string, []string) error { return errors.New("there is nothing to keep") }))
			require.Len(t, b.sink.blocks, 1)
			failure := b.sink.failure(t, "prog/")
			require.Equal(t, c.kind, failure.Kind, failure.Message)
			require.Contains(t, failure.Message, c.want)
		})
	}
}

func TestAProfileThatIsNoneFailsAndOneThatCannotBeKeptEndsTheJob(t *testing.T) {
	t.Parallel()
	const profiler = `{run: [sh, -c, "echo x > $$0", "${profile_file}"], format: folded}`
	b := newBundle(t)
	require.NoError(t, profiled(t, b, profiler, func(string, []string) error {
		return &jobrun.Failure{Kind: bench.FailPermanent, Message: "it is no profile"}
	}))
	require.Contains(t, b.sink.failure(t, "prog/").Message, "under p: it is no profile")

	b = newBundle(t)
	err := profiled(t, b, profiler, func(string, []string) error { return os.ErrDeadlineExceeded })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, b.sink.blocks)
	left, err := os.ReadDir(b.sandbox.dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "all but the temporary directory is gone")
}
