package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// fuzzText runs a parser on any text: it never panics, and what it refuses it
// refuses with [bench.ErrInvalid].
func fuzzText(f *testing.F, parse func(string) error, accepted func(t *testing.T, s string), seeds ...string) {
	f.Helper()
	for _, s := range append(seeds, "", "-", "/", "\x00", "\xff", "a\nb", strings.Repeat("a", 200)) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := parse(s); err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.NotContains(t, s, "/")
		require.Equal(t, []string{s}, strings.Fields(s), "stands in workflow IDs and command lines")
		accepted(t, s)
	})
}

func FuzzParseRequestID(f *testing.F) {
	fuzzText(f, func(s string) error { _, err := bench.ParseRequestID(s); return err }, func(t *testing.T, s string) {
		id, err := bench.ParseRequestID(s)
		require.NoError(t, err)
		require.Equal(t, s, string(id))
		require.Len(t, s, 11)
	}, "rabcdefghjk", "r23456789zz", "rabcdefghjl", "r\xffbcdefghjk")
}

func FuzzParseTokenID(f *testing.F) {
	fuzzText(f, func(s string) error { _, err := bench.ParseTokenID(s); return err }, func(t *testing.T, s string) {
		require.Len(t, s, 11)
		require.NotContains(t, s, "blm_")
	}, "tabcdefghjk", "t0123456789", "blm_abcdefg", "rabcdefghjk")
}

func FuzzParseJobKey(f *testing.F) {
	fuzzText(f, func(s string) error { _, err := bench.ParseJobKey(s); return err }, func(t *testing.T, s string) {
		key, err := bench.ParseJobKey(s)
		require.NoError(t, err)
		require.Equal(t, s, string(key))
		require.Len(t, s, 16)

		// Every run of an accepted key is known by its ID, and leads back to the key.
		run := bench.NewRunID(key, "workflow", "activity", 1)
		back, err := bench.ParseRunID(string(run))
		require.NoError(t, err)
		require.Equal(t, key, back.Job())
	}, string(identity().Key()), "aaaaaaaaaaaaaaaa", "7777777777777777", "aaaaaaaaaaaaaaa1")
}

func FuzzParseRunID(f *testing.F) {
	fuzzText(f, func(s string) error { _, err := bench.ParseRunID(s); return err }, func(t *testing.T, s string) {
		id, err := bench.ParseRunID(s)
		require.NoError(t, err)
		require.Equal(t, s, string(id))
		_, err = bench.ParseJobKey(string(id.Job()))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(s, string(id.Job())+"-"))
	}, string(identity().Key())+"-0123abcd", "aaaaaaaaaaaaaaaa-00000000", "aaaaaaaaaaaaaaaa-0000000-", "a-b-c")
}

func FuzzParseTarget(f *testing.F) {
	fuzzText(f, func(s string) error { _, err := bench.ParseTarget(s); return err }, func(t *testing.T, s string) {
		target, err := bench.ParseTarget(s)
		require.NoError(t, err)
		require.Equal(t, s, target.String())
		require.NotEmpty(t, target.Arch())
		require.True(t, strings.HasPrefix(s, target.Arch()+"-"))

		pool, err := bench.NewPool(target, 1, "p")
		require.NoError(t, err)
		require.Equal(t, "bench/"+s+"/1/p", pool.TaskQueue())
	}, string(linux), "a-b", "a-b-c-d-e", "a-.", "x86_64-pc-windows-msvc")
}

func FuzzCheckTag(f *testing.F) {
	fuzzText(f, bench.CheckTag, func(t *testing.T, s string) {
		require.LessOrEqual(t, len(s), 128)
		require.NotEqual(t, '-', rune(s[0]), "would be an option on a command line")
		require.NotEqual(t, '.', rune(s[0]), "would be a path")
	}, "1.26.1", "v1+x", "..", "-v", "0f3a9c")
}

func FuzzReadProjectConfig(f *testing.F) {
	for _, s := range []string{"", "{}", "null", "[]", `{"targets":["a-b"]}`, `{"queue":{"policy":"spec","max_in_progress":100}}`,
		`{"size":{"class":4096},"max_job_fails":20}`, `{"artifacts":{"tags":{"1.0":{"provider":"url","parameters":{"url":"x"}}}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := bench.ReadProjectConfig(text)
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.NoError(t, c.Check())
		require.Positive(t, c.Slots())
		require.Positive(t, c.Fails())
	})
}
