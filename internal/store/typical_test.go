package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJobsAreExpectedToTakeAsLongAsThoseLikeThem(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	for tag, seconds := range map[string]int{"1.25.0": 10, "1.25.1": 12, "1.25.2": 90} {
		_, job := r.oneJob(tag, "gin")
		r.measure(job, 1, c, measured("gin", 1))
		r.execute(`update job_queue set started_at = completed_at - make_interval(secs => $2) where tag = $1`, tag, seconds)
	}
	_, failed := r.oneJob("1.25.3", "gin")
	r.start(failed, 1, c)
	r.finish(failed, "gave up")

	like, _ := r.oneJob("1.26.0", "gin")
	other, _ := r.oneJob("1.26.1", "gin", "sort")
	ids := append(r.jobIDs(like.ID), r.jobIDs(other.ID)...)
	typical, err := r.TypicalSeconds(t.Context(), ids)
	require.NoError(t, err)
	require.Len(t, typical, 1, "nothing like the other has run")
	require.InDelta(t, 12, typical[ids[0]], 1e-9)

	r.execute(`update job_queue set pool = 'other' where tag = '1.26.0'`)
	typical, err = r.TypicalSeconds(t.Context(), ids)
	require.NoError(t, err)
	require.Empty(t, typical, "machines of another pool may be faster")
	typical, err = r.TypicalSeconds(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, typical)
}
