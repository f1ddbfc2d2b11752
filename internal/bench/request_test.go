package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestRequestTypes(t *testing.T) {
	t.Parallel()
	for _, want := range []bench.RequestType{bench.Release, bench.Master, bench.Try, bench.AdHoc} {
		for _, spelling := range []string{string(want), strings.ToUpper(string(want))} {
			got, err := bench.ParseRequestType(spelling)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.Equal(t, want != bench.AdHoc, want.Tracked(), "%s", want)
	}
	for _, wrong := range []string{"", "ad-hoc", " try", "nightly"} {
		_, err := bench.ParseRequestType(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, "use release, master, try or adhoc")
	}
}

func TestThereAreFourRequestStatuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"waiting_for_artifacts", "artifacts_ready", "in_progress", "completed"} {
		status, err := bench.ParseRequestStatus(s)
		require.NoError(t, err)
		require.Equal(t, s, string(status))
	}
	for _, wrong := range []string{"", "Completed", "in progress", "failed", "queued"} {
		_, err := bench.ParseRequestStatus(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid, "%q", wrong)
	}
}

// All combinations: what is completed has an outcome and an end, and nothing
// else has either.
func TestOnlyCompletedRequestsHaveAnOutcomeAndAnEnd(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, status := range []bench.RequestStatus{bench.WaitingForArtifacts, bench.ArtifactsReady, bench.InProgress, bench.Completed} {
		for _, outcome := range []bench.Outcome{"", bench.Success, bench.Failure, bench.Cancelled, bench.Expired} {
			for _, at := range []*time.Time{nil, &end} {
				standing, err := bench.NewStanding(status, outcome, at)
				legal := outcome == "" && at == nil
				if status == bench.Completed {
					legal = outcome != "" && at != nil
				}
				if legal {
					require.NoError(t, err)
					require.Equal(t, bench.Standing{Status: status, Outcome: outcome, CompletedAt: at}, standing)
					continue
				}
				require.ErrorIs(t, err, bench.ErrInvalid, "%s %s %v", status, outcome, at)
				require.Zero(t, standing)
			}
		}
	}
}

func TestOpenJobsCanStillRun(t *testing.T) {
	t.Parallel()
	for status, open := range map[bench.JobStatus]bool{
		bench.JobQueued: true, bench.JobHandedOut: true, bench.JobInProgress: true,
		bench.JobSuccess: false, bench.JobFailure: false, bench.JobCancelled: false,
	} {
		require.Equal(t, open, status.Open(), "%s", status)
	}
}
