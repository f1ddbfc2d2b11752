package sizeclass_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

func TestStatisticsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *testing.T, _ *rand.Rand, s sizeclass.Statistics) {
		text, err := s.Encode()
		require.NoError(t, err)
		again, err := sizeclass.Read(text)
		require.NoError(t, err)
		second, err := again.Encode()
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(second))
	})
}

// Unreadable statistics are treated as empty: the rules of a first run apply.
func TestUnreadableStatistics(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	for text, want := range map[string]error{
		``:                                     sizeclass.ErrCorrupt,
		`null`:                                 sizeclass.ErrCorrupt,
		`{`:                                    sizeclass.ErrCorrupt,
		`[]`:                                   sizeclass.ErrCorrupt,
		`{}`:                                   sizeclass.ErrCorrupt,
		`{"format":0}`:                         sizeclass.ErrCorrupt,
		`{"format":2,"runs":[]}`:               sizeclass.ErrCorrupt,
		`{"format":2,"runs":3}`:                sizeclass.ErrFormat,
		`{"format":1,"runs":-1}`:               sizeclass.ErrCorrupt,
		`{"format":1,"since":1}`:               sizeclass.ErrCorrupt,
		`{"format":1,"runs":1e99}`:             sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":0}]}`: sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":2},{"class":1}]}`:                                                  sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1},{"class":1}]}`:                                                  sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"tried":5}]}`:                                                    sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"samples":[{"outcome":"lost"}]}]}`:                               sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"samples":[{"outcome":"succeeded","duration_ns":-1}]}]}`:         sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"samples":[{"outcome":"succeeded","at":"yesterday"}]}]}`:         sizeclass.ErrCorrupt,
		`{"format":1,"marks":[{"id":"a","class":0}]}`:                                                       sizeclass.ErrCorrupt,
		`{"format":1,"marks":[{"id":"a","class":1,"instead_core_seconds":-1}]}`:                             sizeclass.ErrCorrupt,
		`{"format":1,"spent":{"total_core_seconds":1.7e308}}`:                                               sizeclass.ErrCorrupt,
		`{"format":1,"spent":{"total_core_seconds":-1}}`:                                                    sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"samples":[{"outcome":"succeeded","peak_memory":-1}]}]}`:         sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"samples":[{"outcome":"succeeded","duration_ns":9.3e18}]}]}`:     sizeclass.ErrCorrupt,
		`{"format":1,"classes":[{"class":1,"streak":-1,"samples":[{"outcome":"timed_out","cpu_time":1}]}]}`: sizeclass.ErrCorrupt,
	} {
		s, err := sizeclass.Read([]byte(text))
		require.ErrorIs(t, err, want, text)
		require.Zero(t, s, text)
		selection, _, err := a.Select(s, question())
		require.NoError(t, err)
		require.EqualValues(t, 1, selection.Class)
		require.Equal(t, 10*time.Second, selection.Timeout)
	}
}

// Whatever is read can be used by Select and Learn and written again.
func FuzzRead(f *testing.F) {
	for i := range uint64(20) {
		text, err := randomStatistics(rand.New(rand.NewPCG(i, 7))).Encode()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"format":1,"classes":[{"class":4096,"samples":[{"outcome":"succeeded","duration_ns":9223372036854775807,"at":"0001-01-01T00:00:00Z"}]}],"spent":{"total_core_seconds":1e18,"probe_core_seconds":1e18}}`))
	a, err := sizeclass.New(sizeclass.Defaults())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := sizeclass.Read(text)
		if err != nil {
			require.Zero(t, s)
			return
		}
		for _, classes := range [][]bench.SizeClass{classes, {1}, {4096}} {
			q := question()
			q.Classes = classes
			selection, after, err := a.Select(s, q)
			require.NoError(t, err)
			require.Contains(t, classes, selection.Class)
			sum := 0.0
			for _, c := range selection.Choices {
				sum += c.Probability
			}
			require.InDelta(t, 1, sum, 1e-9)
			require.Positive(t, selection.Timeout)
			require.LessOrEqual(t, selection.Timeout, q.Original)
			learned := a.Learn(after, sizeclass.Attempt{ID: "a1", Class: selection.Class, Outcome: sizeclass.TimedOut, Duration: time.Second, At: now, Complete: true})
			written, err := learned.Encode()
			require.NoError(t, err)
			_, err = sizeclass.Read(written)
			require.NoError(t, err)
		}
	})
}
