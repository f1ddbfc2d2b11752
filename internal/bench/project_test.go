package bench_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestProjectConfigDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "null"} {
		c, err := bench.ReadProjectConfig([]byte(text))
		require.NoError(t, err)
		require.Equal(t, bench.ProjectConfig{}, c)
		require.Equal(t, 1, c.Slots(), "one tracked request at a time")
		require.Equal(t, 3, c.Fails())
	}
}

func TestProjectConfigRoundTrip(t *testing.T) {
	t.Parallel()
	want := bench.ProjectConfig{
		Description: "The Go compiler",
		Targets:     []bench.Target{linux, "aarch64-apple-darwin"},
		Artifacts: bench.ArtifactSource{
			Provider:   "url",
			Parameters: map[string]string{"url": "https://example.org/{tag}.tar.gz"},
			Tags:       map[string]bench.TagSource{"1.26.1": {Provider: "directory", Parameters: map[string]string{"path": "/srv/1.26.1"}}},
		},
		Queue:       bench.QueuePolicy{Policy: "upstream", MaxInProgress: 4},
		Size:        bench.SizePolicy{Class: 8},
		MaxJobFails: 5,
	}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := bench.ReadProjectConfig(text)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 4, got.Slots())
	require.Equal(t, 5, got.Fails())
}

func TestInvalidProjectConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		`{"targets": ["x86_64-unknown-linux-gnu", "linux"]}`:  `target "linux"`,
		`{"artifacts": {"tags": {"a/b": {"provider": "x"}}}}`: `tag "a/b"`,
		`{"queue": {"policy": "fifo"}}`:                       `queue policy "fifo": use spec or upstream`,
		`{"queue": {"max_in_progress": 0}}`:                   `max_in_progress "0": use 1 to 100, or leave it out for 1`,
		`{"queue": {"max_in_progress": -1}}`:                  `max_in_progress "-1"`,
		`{"queue": {"max_in_progress": 101}}`:                 `max_in_progress "101"`,
		`{"max_job_fails": 0}`:                                `max_job_fails "0"`,
		`{"max_job_fails": -1}`:                               `max_job_fails "-1"`,
		`{"max_job_fails": 21}`:                               `max_job_fails "21"`,
		`{"size": {"class": -1}}`:                             `size class "-1"`,
		`{"size": {"class": 4097}}`:                           `size class "4097"`,
		`{"targets": "x86_64-unknown-linux-gnu"}`:             "project configuration",
		`{"max_job_fails": 1.5}`:                              "project configuration",
		`{"verify": "always"}`:                                `verify "always": use off, suspects or all`,
		`{"verify": 1}`:                                       `verify "1"`,
		`{"verify_budget": "0.25"}`:                           `verify_budget "0.25": use a percentage`,
		`{"verify_budget": "0.5%"}`:                           `verify_budget "0.5%"`,
		`{"verify_budget": "NaN%"}`:                           `verify_budget "NaN%"`,
		`{`:                                                   "project configuration",
		`[]`:                                                  "project configuration",
	} {
		_, err := bench.ReadProjectConfig([]byte(text))
		require.ErrorIs(t, err, bench.ErrInvalid, text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestProjectConfigLimitsAreInclusive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"queue": {"policy": "spec", "max_in_progress": 1}}`, `{"queue": {"max_in_progress": null}}`,
		`{"queue": {"policy": "upstream", "max_in_progress": 100}}`,
		`{"max_job_fails": 1}`, `{"max_job_fails": 20}`,
		`{"verify": null}`, `{"verify": "off", "verify_budget": "1%"}`, `{"verify_budget": "10000%"}`,
		`{"size": {"class": 1}}`, `{"size": {"class": 4096}}`,
	} {
		_, err := bench.ReadProjectConfig([]byte(text))
		require.NoError(t, err, text)
	}
}

// The nearest one counts: that of the tag, that of the project, that of the
// suite. Parameters belong to their provider and are never mixed.
func TestArtifactSourceFor(t *testing.T) {
	t.Parallel()
	suite, project, own := map[string]string{"of": "suite"}, map[string]string{"of": "project"}, map[string]string{"of": "tag"}
	tags := map[string]bench.TagSource{"1.0": {Provider: "directory", Parameters: own}, "2.0": {Provider: "goroot"}}
	tests := []struct {
		name       string
		source     bench.ArtifactSource
		tag        string
		provider   string
		parameters map[string]string
	}{
		{"the suite decides", bench.ArtifactSource{}, "1.0", "rustup", suite},
		{"the project overrides", bench.ArtifactSource{Provider: "url", Parameters: project}, "1.0", "url", project},
		{"parameters without a provider mean nothing", bench.ArtifactSource{Parameters: project}, "1.0", "rustup", suite},
		{"the tag overrides the project", bench.ArtifactSource{Provider: "url", Parameters: project, Tags: tags}, "1.0", "directory", own},
		{"the tag overrides the suite", bench.ArtifactSource{Tags: tags}, "1.0", "directory", own},
		{"the tag's provider has no one else's parameters", bench.ArtifactSource{Provider: "url", Parameters: project, Tags: tags}, "2.0", "goroot", nil},
		{"another tag", bench.ArtifactSource{Provider: "url", Parameters: project, Tags: tags}, "3.0", "url", project},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			provider, parameters := test.source.For(test.tag, "rustup", suite)
			require.Equal(t, test.provider, provider)
			require.Equal(t, test.parameters, parameters)
		})
	}
}

// Suspects are measured again unless something else is said. In v0.1.0 that was a boolean.
func TestWhatIsVerified(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bench.VerifyMode{
		`{}`: bench.VerifySuspects, `{"verify": true}`: bench.VerifySuspects, `{"verify": false}`: bench.VerifyOff,
		`{"verify": "off"}`: bench.VerifyOff, `{"verify": "suspects"}`: bench.VerifySuspects, `{"verify": "all"}`: bench.VerifyAll,
	} {
		c, err := bench.ReadProjectConfig([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.VerifyMode(), text)
	}
	for budget, want := range map[string]time.Duration{"": time.Hour, "25%": time.Hour, "50 %": 2 * time.Hour, "1%": bench.VerifyAtLeast} {
		require.Equal(t, want, bench.ProjectConfig{VerifyBudget: budget}.VerifyTime(4*time.Hour), budget)
	}
}

// The few iterations of a small suite leave a share that decides nothing, and a person may wait for less than ten minutes.
func TestMeasuringAgainMayAlwaysTakeSomeTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": bench.VerifyAtLeast, "4m": 4 * time.Minute, "1s": 15 * time.Second, "24h": 24 * time.Hour} {
		c, err := bench.ReadProjectConfig(fmt.Appendf(nil, `{"verify_at_least": %q}`, text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.VerifyTime(time.Minute), text)
	}
	for _, wrong := range []string{"0", "0s", "-4m", "999ms", "24h1s", "4", "4 minutes", "25%", "never"} {
		_, err := bench.ReadProjectConfig(fmt.Appendf(nil, `{"verify_at_least": %q}`, wrong))
		require.ErrorIs(t, err, bench.ErrInvalid, wrong)
		require.ErrorContains(t, err, "use a duration from 1s to 24h such as 4m, or leave it out for 10m", wrong)
	}
}
