package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// TestEveryAdmissionCanBeDecidedAgain: the state recorded with an admission, ordered anew, has the admitted request as the
// first that may start.
func TestEveryAdmissionCanBeDecidedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"queue": {"max_in_progress": 2, "policy": "upstream"}}`)
	b.register("c1")
	third, second, first := b.create(bench.Release, "1.3.0", 3), b.create(bench.Release, "1.1.0", 2), b.create(bench.Release, "1.2.0", 1)
	waits := b.create(bench.Master, "c2", 9)
	b.execute(`update benchmark_request set waits_for = '1.3.0', parent = '1.3.0' where id = $1`, waits.ID)

	for range 3 { // each pass frees what the one before admitted
		b.admit()
		running, err := b.store.InProgressTracked(t.Context(), project)
		require.NoError(t, err)
		for _, r := range running {
			require.NoError(t, b.store.FinishJobsOf(t.Context(), r.ID))
			require.NoError(t, b.store.CompleteRequest(t.Context(), r.ID, bench.Success, "", nil, ""))
		}
	}

	recorded, err := b.store.Admissions(t.Context(), project)
	require.NoError(t, err)
	order := []bench.RequestID{first.ID, second.ID, third.ID, waits.ID}
	require.Len(t, recorded, len(order))
	for i, a := range recorded {
		require.Equal(t, order[i], a.RequestID)
		require.Equal(t, "upstream", a.Policy)
		require.Equal(t, string(a.RequestID), firstAdmissible(t, a))
	}
}

func firstAdmissible(t *testing.T, a store.AdmissionRecord) string {
	t.Helper()
	requests, completed, err := admission.DecodeState(a.State)
	require.NoError(t, err, "%s", a.State)
	for _, p := range admission.Order(requests, completed, admission.Policy(a.Policy)) {
		if p.Admissible {
			return string(p.Request.ID)
		}
	}
	return ""
}
