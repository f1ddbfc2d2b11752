package bench_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

const linuxTarget = bench.Target("x86_64-unknown-linux-gnu")

func recipeOf(t *testing.T, parameters map[string]string) bench.BuildRecipe {
	t.Helper()
	r, err := bench.ParseBuildRecipe(parameters, "v1", linuxTarget)
	require.NoError(t, err)
	return r
}

func TestParseBuildRecipe(t *testing.T) {
	t.Parallel()
	r := recipeOf(t, map[string]string{
		"repository": "https://example.org/{target}.git", "command": `["sh", "-c", "make && make check"]`, "output": "./out/", "timeout": "90s",
		"pass_env": "PATH GOPROXY PATH", "env.B": "2", "env.A": "one two",
	})
	require.Equal(t, bench.BuildRecipe{
		Repository: "https://example.org/x86_64-unknown-linux-gnu.git", Command: []string{"sh", "-c", "make && make check"},
		Env: []string{"A=one two", "B=2"}, PassEnv: []string{"GOPROXY", "PATH"}, Output: "out", TimeoutSeconds: 90,
	}, r)
	short := recipeOf(t, map[string]string{"repository": "git@example.org:x.git", "command": " make  all "})
	require.Equal(t, []string{"make", "all"}, short.Command)
	require.Equal(t, ".", short.Output)
	require.Equal(t, bench.DefaultBuildTimeout, short.Timeout())
}

func TestInvalidBuildParametersAreRefused(t *testing.T) {
	t.Parallel()
	good := map[string]string{"repository": "/srv/repo", "command": "make"}
	for name, c := range map[string]struct{ parameter, value, want string }{
		"no repository":       {"repository", "", "set the parameter repository"},
		"relative repository": {"repository", "repo", "absolute path or a URL"},
		"an option":           {"repository", "--upload-pack=x", "absolute path or a URL"},
		"a remote helper":     {"repository", "ext::sh -c x", "absolute path or a URL"},
		"another scheme":      {"repository", "fd://3", "absolute path or a URL"},
		"no command":          {"command", "", "set the parameter command"},
		"an empty list":       {"command", "[]", "set the parameter command"},
		"a shell line":        {"command", "make && make check", "there is no shell"},
		"no list of strings":  {"command", "[1]", "list of words"},
		"absolute output":     {"output", "/usr", "relative to it"},
		"climbing output":     {"output", "a/../../b", "relative to it"},
		"no output":           {"output", "", "relative to it"},
		"endless":             {"timeout", "100h", "1s to 12h"},
		"no duration":         {"timeout", "soon", "1s to 12h"},
		"a secret":            {"pass_env", "PATH BENCHLOOM_TOKEN", "never passed"},
		"no variable":         {"pass_env", "A-B", "digits"},
		"no variable name":    {"env.1", "x", "digits"},
		"no text":             {"env.A", "a\x00b", "UTF-8"},
		"hidden zero byte":    {"command", `["a\u0000"]`, "zero byte"},
		"unknown":             {"branch", "main", "it knows repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parameters := maps.Clone(good)
			parameters[c.parameter] = c.value
			_, err := bench.ParseBuildRecipe(parameters, "v1", linuxTarget)
			require.ErrorIs(t, err, bench.ErrInvalid)
			require.ErrorContains(t, err, c.want)

			config := bench.ProjectConfig{Artifacts: bench.ArtifactSource{Tags: map[string]bench.TagSource{"v1": {Provider: "build", Parameters: parameters}}}}
			require.ErrorIs(t, config.Check(), bench.ErrInvalid)
		})
	}
}

// What decides what comes out is in the key; nothing else is.
func TestBuildKey(t *testing.T) {
	t.Parallel()
	base := map[string]string{"repository": "/srv/repo", "command": "make", "output": "out", "env.A": "1", "pass_env": "PATH", "timeout": "1m"}
	tree, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	key := func(project, tag string, target bench.Target, tree string, change ...string) bench.BuildKey {
		parameters := maps.Clone(base)
		for i := 0; i < len(change); i += 2 {
			parameters[change[i]] = change[i+1]
		}
		spec, err := recipeOf(t, parameters).Spec(project, tag, target, strings.Repeat(tag[1:], 40), tree)
		require.NoError(t, err)
		_, err = bench.ParseBuildKey(string(spec.Key))
		require.NoError(t, err)
		return spec.Key
	}
	want := key("p", "v1", linuxTarget, tree)
	require.Equal(t, want, key("p", "v2", linuxTarget, tree), "tag and commit")
	require.Equal(t, want, key("p", "v1", linuxTarget, tree, "repository", "/mnt/repo"), "where it comes from")
	require.Equal(t, want, key("p", "v1", linuxTarget, tree, "timeout", "2m"))
	seen := map[bench.BuildKey]bool{want: true}
	for _, k := range []bench.BuildKey{
		key("q", "v1", linuxTarget, tree), key("p", "v1", "aarch64-unknown-linux-gnu", tree), key("p", "v1", linuxTarget, other),
		key("p", "v1", linuxTarget, tree, "command", "make all"), key("p", "v1", linuxTarget, tree, "output", "."),
		key("p", "v1", linuxTarget, tree, "env.A", "2"), key("p", "v1", linuxTarget, tree, "pass_env", "HOME"),
	} {
		require.False(t, seen[k])
		seen[k] = true
	}
	_, err := recipeOf(t, base).Spec("p", "v1", linuxTarget, "main", tree)
	require.ErrorIs(t, err, bench.ErrInvalid)
	for _, bad := range []string{"", "xyz", strings.Repeat("A", 64)} {
		_, err := bench.ParseBuildKey(bad)
		require.ErrorIs(t, err, bench.ErrInvalid)
	}
}

func FuzzBuildRecipe(f *testing.F) {
	f.Add("/srv/repo", "make all", "out", "PATH")
	f.Add("https://example.org/x", `["sh","-c","x"]`, ".", "A B")
	f.Add("0:0", "\x84", "0", "A")
	f.Fuzz(func(t *testing.T, repository, command, output, pass string) {
		r, err := bench.ParseBuildRecipe(map[string]string{"repository": repository, "command": command, "output": output, "pass_env": pass}, "v1", linuxTarget)
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.NotEmpty(t, r.Command[0])
		require.False(t, strings.HasPrefix(r.Repository, "-"))
		require.False(t, strings.HasPrefix(r.Output, "/") || strings.HasPrefix(r.Output, "../"))
		// Read back from the record it is the same.
		text, err := json.Marshal(r)
		require.NoError(t, err)
		var again bench.BuildRecipe
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, r.Hash(linuxTarget), again.Hash(linuxTarget))
	})
}
