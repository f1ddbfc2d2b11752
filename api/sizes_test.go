package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func TestLearnedSizesAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none, err := b.reader.Shapes(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, none.Shapes)

	b.project(t)
	b.register(t, "bench-1")
	j := b.submit(t, "1.26.0")
	const shape = "shapeshapeshapes"
	_, err = b.reader.Shape(t.Context(), string(j.key), "")
	require.ErrorContains(t, err, "is not learned: it is fixed")
	b.past(t, `update job_queue set shape = '`+shape+`'`)
	_, err = b.reader.Shape(t.Context(), string(j.key), "")
	require.ErrorContains(t, err, "none of its runs has ended")
	_, err = b.reader.Shape(t.Context(), "nothing", "")
	require.ErrorIs(t, err, apiclient.ErrNotFound)

	b.past(t, `insert into size_statistics (project, shape, version, about, statistics) values ('go', '`+shape+`', 3,
		'{"target": "x86_64-unknown-linux-gnu", "command": ["./sort", "--large"]}', '{"format": 1, "runs": 4, "since": 0, "spent": {"total_core_seconds": 12, "probe_core_seconds": 0},
		"counts": {"probes": 1, "too_small": 0, "skipped_in_flight": 0, "skipped_budget": 0, "forgotten": 0},
		"classes": [{"class": 1, "tried": 2, "samples": [{"outcome": "succeeded", "duration_ns": 3000000000, "at": "2026-03-01T12:00:00Z"}]}]}')`)
	e, err := b.reader.Shape(t.Context(), string(j.key), "")
	require.NoError(t, err)
	require.Equal(t, "./sort --large on x86_64-unknown-linux-gnu", e.About)
	require.Equal(t, 4, e.Runs)
	require.Equal(t, bench.SizeClass(2), e.Next.Class, "the only class that is registered")
	require.Equal(t, []bench.SizeClass{1, 2}, []bench.SizeClass{e.Classes[0].Class, e.Classes[1].Class})
	require.False(t, e.Classes[0].Available)
	require.Equal(t, 3.0, e.Classes[0].Samples[0].Seconds)
	again, err := b.reader.Shape(t.Context(), shape, "go")
	require.NoError(t, err)
	require.Equal(t, e, again)
	list, err := b.reader.Shapes(t.Context(), "go")
	require.NoError(t, err)
	require.Len(t, list.Shapes, 1)
	require.Equal(t, "class 2", list.Shapes[0].Next)

	x, err := b.reader.ExplainJob(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, shape, x.Size.Shape)
	require.Contains(t, x.Size.Why, "it is selected when the job is handed out, by what is known now class 2: it is the only class")
	require.Len(t, x.Size.Choices, 1)

	// With no sample left its last job says how long its like may take.
	b.registerAs(t, "large", func(r *apiclient.Registration) { r.SizeClass = 4 })
	b.past(t, `update job_queue set command = '{"argv": ["./sort"], "timeout_seconds": 1800, "iterations": 1}', kind = 'command'`)
	b.past(t, `update size_statistics set statistics = jsonb_set(statistics, '{classes}', '[]') || jsonb_build_object('failed_on_largest', now())`)
	e, err = b.reader.Shape(t.Context(), shape, "go")
	require.NoError(t, err)
	require.Equal(t, bench.SizeClass(4), e.Next.Class)
	require.Equal(t, (31 * time.Minute).Seconds(), e.Next.TimeoutSeconds)

	// A long command is known by its beginning.
	b.past(t, `update size_statistics set about = jsonb_build_object('command', jsonb_build_array('./sort', repeat('x', 100000)))`)
	list, err = b.reader.Shapes(t.Context(), "go")
	require.NoError(t, err)
	require.Equal(t, "./sort "+strings.Repeat("x", 73)+"…", list.Shapes[0].About)

	// Another project has the shape, too; one of the two cannot be read.
	_, err = b.reader.Shape(t.Context(), shape, "rustc")
	require.ErrorContains(t, err, "project rustc knows nothing of shape")
	b.past(t, `insert into size_statistics (project, shape, version, statistics, about) values ('adhoc', '`+shape+`', 1, '{"format": 9}', '{"test_cases": ["gin build", "lo build"], "of": 7, "in_turns": true}')`)
	_, err = b.reader.Shape(t.Context(), shape, "")
	require.ErrorContains(t, err, "say which one is meant")
	e, err = b.reader.Shape(t.Context(), shape, "adhoc")
	require.NoError(t, err)
	require.Contains(t, e.Unread, "later version")
	require.Zero(t, e.Runs)
	require.Equal(t, "7 test cases, the first of them gin build, of two artifacts in turns", e.About)
}
