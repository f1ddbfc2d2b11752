package collection

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// logged is an API that stores the output of runs like the real one: of a chunk
// that overlaps stored output only the new part is added.
type logged struct {
	API
	text []byte
	err  error // answered instead
	lost bool  // the next chunk arrives, its answer does not
}

func (l *logged) AppendLog(_ context.Context, _ bench.RunID, offset int64, data []byte) (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	if have := int64(len(l.text)) - offset; have >= 0 && have < int64(len(data)) {
		l.text = append(l.text, data[have:]...)
	}
	if l.lost {
		l.lost = false
		return 0, errors.New("connection reset")
	}
	return int64(len(l.text)), nil
}

func write(t *testing.T, l *runLog, text string) {
	t.Helper()
	n, err := l.Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n, "a log never fails what writes to it")
}

func TestOutputIsSentOnceAlsoAfterFailures(t *testing.T) {
	t.Parallel()
	api := &logged{}
	l := newLog(api, "run")
	l.flush(t.Context()) // nothing to send
	write(t, l, "one\n")
	l.flush(t.Context())
	require.Equal(t, "one\n", string(api.text))

	// The API is unreachable: output waits, including new output.
	api.err = errors.New("away")
	write(t, l, "two\n")
	l.flush(t.Context())
	write(t, l, "three\n")
	l.flush(t.Context())
	api.err = nil
	l.flush(t.Context())
	require.Equal(t, "one\ntwo\nthree\n", string(api.text))

	// It arrived, but the answer was lost.
	api.lost = true
	write(t, l, "four\n")
	l.flush(t.Context())
	write(t, l, "five\n")
	l.flush(t.Context())
	l.flush(t.Context())
	require.Equal(t, "one\ntwo\nthree\nfour\nfive\n", string(api.text))
}

func TestOutputThatDoesNotFitIsNamed(t *testing.T) {
	t.Parallel()
	api := &logged{}
	l := newLog(api, "run")
	write(t, l, strings.Repeat("x", maxPendingLog-2))
	write(t, l, "yyyyy") // 3 too many
	write(t, l, "zzzz")  // 4 more
	l.flush(t.Context())
	kept, note := api.text[:maxPendingLog], string(api.text[maxPendingLog:])
	require.True(t, bytes.HasSuffix(kept, []byte("xyy")))
	require.Equal(t, "\n== 7 bytes of output were dropped: they came faster than they could be sent\n", note)
	require.True(t, strings.HasSuffix(l.tail(), "yyyyyzzzz"), "the end stands with the run, whatever was dropped")

	// There is space again, and nothing more to report.
	write(t, l, "after")
	l.flush(t.Context())
	require.Equal(t, note+"after", string(api.text[maxPendingLog:]))
}

func TestOutputIsBoundedWhileTheAPIIsAway(t *testing.T) {
	t.Parallel()
	api := &logged{err: errors.New("away")}
	l := newLog(api, "run")
	for range 5 {
		write(t, l, strings.Repeat("x", maxPendingLog/2))
		l.flush(t.Context())
		require.LessOrEqual(t, len(l.pending), maxPendingLog)
	}
	api.err = nil
	l.flush(t.Context())
	require.Contains(t, string(api.text[maxPendingLog:]), "bytes of output were dropped")
}

func TestTheTailIsTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	l := newLog(&logged{}, "run")
	require.Empty(t, l.tail())
	for range maxTail {
		write(t, l, "line\n")
	}
	write(t, l, "the end")
	require.Len(t, l.tail(), maxTail)
	require.True(t, strings.HasSuffix(l.tail(), "line\nthe end"))
}

func TestAFailedSendForgetsNothingOfWhatWasDropped(t *testing.T) {
	t.Parallel()
	api := &logged{err: errors.New("away")}
	l := newLog(api, "run")
	write(t, l, strings.Repeat("x", maxPendingLog+1000))
	l.flush(t.Context())
	api.err = nil
	l.flush(t.Context())
	require.Equal(t, "\n== 1000 bytes of output were dropped: they came faster than they could be sent\n", string(api.text[maxPendingLog:]))
}
