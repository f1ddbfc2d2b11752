package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

const x86 = bench.Target("x86_64-unknown-linux-gnu")

// examples has one valid definition of each kind.
func examples() map[graph.Kind]graph.Definition {
	recipe := bench.BuildRecipe{Repository: "https://example.org/tool.git", Command: []string{"make", "a && b"}, Env: []string{"B=2", "A=1"}, PassEnv: []string{"PATH"}}
	tc := bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: x86}
	return map[graph.Kind]graph.Definition{
		graph.KindBenchmark: graph.Benchmark{
			Tag: "1.26.0", Versus: "1.25.9", Target: x86, Selection: bench.Selection{Set: "demo"}, Iterations: 3,
			Constraints: &bench.Constraints{CPUs: 2, Devices: []string{"gpu"}}, Chunks: &graph.Chunks{Min: 1, Max: 4},
		},
		graph.KindBuild: graph.Build{Tag: "abc123", Target: x86, BuildRecipe: recipe},
		graph.KindCommand: graph.Command{
			Target:    x86,
			Checkouts: []graph.Checkout{{Repository: "https://example.org/tool.git", Revision: "release/1.2"}, {Repository: "/srv/data.git", Revision: "main", Path: "data/"}},
			Steps:     []graph.Step{{Argv: []string{"make"}, Env: map[string]string{"Z": "<1>", "A": "2"}}, {Argv: []string{"./check"}, Dir: "data", TimeoutSeconds: 60}},
			Rules:     graph.Rules{Success: []int{3, 0, 3}, Failure: []string{"^FATAL"}, RetryCodes: []int{75}, RetryPatterns: []string{"connection reset"}, Retries: 2},
			Uploads:   []string{"./out/*.json"},
		},
		graph.KindProfile: graph.Profile{Tag: "1.26.0", Target: x86, TestCase: tc, Profiler: "perf"},
		graph.KindCompare: graph.Compare{Tag: "1.26.0", Baseline: "1.25.9", FailOnRegression: true},
		graph.KindNotify:  graph.Notify{Tag: "1.26.0", Text: "nightly"},
		graph.KindSignOff: graph.SignOff{Question: "Publish?", Accounts: []string{"bea", "ada", "bea"}, LimitSeconds: 3600},
	}
}

// Each kind has one encoding, which reads back as the same job; its hash never changes, or
// recorded graphs would be other ones.
func TestAJobIsWhatItsEncodingSays(t *testing.T) {
	t.Parallel()
	hashes := map[string]graph.Kind{}
	for _, kind := range graph.Kinds() {
		d := examples()[kind]
		require.NotNil(t, d, "%s has no example", kind)
		j, err := graph.NewJob(d)
		require.NoError(t, err)
		require.Equal(t, kind, j.Kind())
		require.Len(t, j.Hash(), 64)
		require.NotContains(t, hashes, j.Hash())
		hashes[j.Hash()] = kind

		again, err := graph.ParseJob(j.Canonical())
		require.NoError(t, err)
		require.Equal(t, j, again)
		encoded, err := json.Marshal(map[string]any{"job": j})
		require.NoError(t, err)
		require.Contains(t, string(encoded), `"kind":"`+string(kind)+`"`)

		same, err := graph.NewJob(j.Definition())
		require.NoError(t, err)
		require.Equal(t, j.Hash(), same.Hash())
		other, err := graph.ParseJob([]byte(" " + string(j.Canonical())))
		require.ErrorIs(t, err, bench.ErrInvalid, "a second encoding of one job would have another hash")
		require.Empty(t, other.Kind())
	}
	command, err := graph.NewJob(examples()[graph.KindCommand])
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"command","definition":{"target":"x86_64-unknown-linux-gnu",
		"checkouts":[{"repository":"https://example.org/tool.git","revision":"release/1.2"},{"repository":"/srv/data.git","revision":"main","path":"data"}],
		"steps":[{"argv":["make"],"env":{"A":"2","Z":"<1>"}},{"argv":["./check"],"dir":"data","timeout_seconds":60}],
		"rules":{"success":[0,3],"failure":["^FATAL"],"retry_codes":[75],"retry_patterns":["connection reset"],"retries":2},"uploads":["out/*.json"]}}`,
		string(command.Canonical()))
	signOff, err := graph.NewJob(examples()[graph.KindSignOff])
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"sign-off","definition":{"question":"Publish?","accounts":["ada","bea"],"limit_seconds":3600}}`, string(signOff.Canonical()))
	// sha256sum of the prefix and the encoding.
	require.Equal(t, "f0b02f4aca3deae5bccab9d7e528204f", signOff.Hash()[:32])
}

// A caller that changes what it gave changes no job.
func TestAJobIsImmutable(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "1"}
	argv := []string{"make"}
	j, err := graph.NewJob(graph.Command{Target: x86, Steps: []graph.Step{{Argv: argv, Env: env}}})
	require.NoError(t, err)
	before := string(j.Canonical())
	env["A"], argv[0] = "2", "rm"
	require.Equal(t, before, string(j.Canonical()))
	d, ok := j.Definition().(graph.Command)
	require.True(t, ok)
	require.Equal(t, "make", d.Steps[0].Argv[0])
	require.Equal(t, "1", d.Steps[0].Env["A"])
}

func TestJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	step := []graph.Step{{Argv: []string{"true"}}}
	command := func(change func(*graph.Command)) graph.Command {
		c := graph.Command{Target: x86, Steps: step}
		change(&c)
		return c
	}
	for _, c := range []struct {
		d    graph.Definition
		says string
	}{
		{nil, "no definition"},
		{graph.Benchmark{Target: x86}, "tag"},
		{graph.Benchmark{Tag: "1", Target: "there"}, "target"},
		{graph.Benchmark{Tag: "1", Target: x86, Versus: "1"}, "with itself"},
		{graph.Benchmark{Tag: "1", Target: x86, Suite: "go"}, "64 hexadecimal digits"},
		{graph.Benchmark{Tag: "1", Target: x86, Iterations: -1}, "positive number"},
		{graph.Benchmark{Tag: "1", Target: x86, Selection: bench.Selection{Set: "a"}, TestCases: []bench.TestCase{{Benchmark: "b", Target: x86}}}, "not both"},
		{graph.Benchmark{Tag: "1", Target: x86, TestCases: []bench.TestCase{{Benchmark: "b", Target: "aarch64-unknown-linux-gnu"}}}, "of its target"},
		{graph.Benchmark{Tag: "1", Target: x86, Selection: bench.Selection{Targets: []bench.Target{x86}}}, "one target"},
		{graph.Benchmark{Tag: "1", Target: x86, Chunks: &graph.Chunks{Min: 3, Max: 2}}, "3 to 2"},
		{graph.Benchmark{Tag: "1", Target: x86, Constraints: &bench.Constraints{CPUs: -1}}, "cpus"},
		{graph.Build{Tag: "1", Target: x86}, "repository"},
		{graph.Build{Tag: "1", Target: x86, BuildRecipe: bench.BuildRecipe{Repository: "/r", Command: []string{"make"}, Env: []string{"A=1", "A=2"}}}, "each once"},
		{graph.Build{Tag: "1", Target: x86, BuildRecipe: bench.BuildRecipe{Repository: "/r", Command: []string{"make"}, Output: "../x"}}, "output"},
		{command(func(c *graph.Command) { c.Steps = nil }), "1 to 100"},
		{command(func(c *graph.Command) { c.Steps = []graph.Step{{}} }), "name a program"},
		{command(func(c *graph.Command) { c.Steps = []graph.Step{{Argv: []string{"a\x00b"}}} }), "zero bytes"},
		{command(func(c *graph.Command) { c.Steps = []graph.Step{{Argv: []string{"\xff"}}} }), "UTF-8"},
		{command(func(c *graph.Command) {
			c.Steps = []graph.Step{{Argv: []string{"a"}, Env: map[string]string{"A-B": ""}}}
		}), "environment variable"},
		{command(func(c *graph.Command) { c.Steps = []graph.Step{{Argv: []string{"a"}, Dir: "../b"}} }), "within the job's directory"},
		{command(func(c *graph.Command) { c.Checkouts = []graph.Checkout{{Repository: "ext::sh", Revision: "a"}} }), "repository"},
		{command(func(c *graph.Command) {
			c.Checkouts = []graph.Checkout{{Repository: "/r", Revision: "--upload-pack=x"}}
		}), "revision"},
		{command(func(c *graph.Command) {
			c.Checkouts = []graph.Checkout{{Repository: "/r", Revision: "a"}, {Repository: "/s", Revision: "a"}}
		}), "one place"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{Failure: []string{"("}} }), "pattern"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{RetryCodes: []int{0}, Retries: 1} }), "both success and retry"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{RetryCodes: []int{75}} }), "retries"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{Retries: 3} }), "retries"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{RetryCodes: []int{75}, Retries: 50} }), "1 to 49"},
		{command(func(c *graph.Command) { c.Rules = graph.Rules{Success: []int{256}} }), "0 to 255"},
		{command(func(c *graph.Command) { c.Uploads = []string{"/etc/passwd"} }), "upload"},
		{graph.Profile{Tag: "1", Target: x86, Profiler: "perf"}, "benchmark"},
		{graph.Compare{Tag: "1", Baseline: "1"}, "with itself"},
		{graph.Notify{Tag: "1", Text: strings.Repeat("a", 1001)}, "1000 bytes"},
		{graph.SignOff{LimitSeconds: 1}, "say what is agreed to"},
		{graph.SignOff{Question: "Go?"}, "time limit"},
		{graph.SignOff{Question: "Go?", LimitSeconds: 31 * 24 * 3600}, "30 days"},
		{graph.SignOff{Question: "Go?", LimitSeconds: 1, Accounts: []string{"a b"}}, "account"},
	} {
		_, err := graph.NewJob(c.d)
		require.ErrorIs(t, err, bench.ErrInvalid, "%+v", c.d)
		require.ErrorContains(t, err, c.says, "%+v", c.d)
	}
	for _, text := range []string{"", "{}", `{"kind":"benchmark"}`, `{"kind":"other","definition":{}}`, `{"kind":"notify","definition":{"tag":"1","more":1}}`, `{"kind":"notify","definition":{"tag":"1"}}x`} {
		_, err := graph.ParseJob([]byte(text))
		require.ErrorIs(t, err, bench.ErrInvalid, "%s", text)
	}
	_, err := json.Marshal(graph.Job{})
	require.ErrorContains(t, err, "no definition")
}
