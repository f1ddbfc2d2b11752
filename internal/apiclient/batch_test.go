package apiclient_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Any line is either refused with a reason of one line or is a
// job that reads as the same again.
func FuzzReadJob(f *testing.F) {
	for _, seed := range []string{
		`{"argv":["./x","--quick"],"name":"quick","env":{"A":"b"},"timeout":"5m","iterations":3,"size_class":2}`,
		`{"argv":["x"],"timeout_seconds":90,"target":"x86_64-unknown-linux-gnu"}`,
		`{"argv":"x"}`, `{"argv":["x"],"env":[]}`, `{"argv":["x"],"cpu":1}`, `[]`, `7`, `null`, `{`, ``, `{"argv":["\u0000"]}`, `{"argv":["x"]} {}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		j, err := apiclient.ReadJob([]byte(line))
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.NotContains(t, strings.TrimSpace(err.Error()), "json: unknown", "in words of people")
			return
		}
		require.NotEmpty(t, j.Argv)
		require.Empty(t, j.Timeout, "it is in seconds")
		text, err := json.Marshal(j)
		require.NoError(t, err)
		again, err := apiclient.ReadJob(text)
		require.NoError(t, err)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(second))
	})
}
