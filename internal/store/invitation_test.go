package store_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

func hashOf(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func invitation(name string) store.Invitation {
	return store.Invitation{
		Name: name, Target: target, SizeClass: 4, Pool: "main", Labels: map[string]string{"rack": "2"}, BenchmarkSets: []string{"first"}, MachineType: "vm", MachineGroup: "taishan", Devices: []string{"gpu"}, InvitedBy: "ada",
	}
}

func TestAnInvitationIsExchangedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, err := r.Invitation(t.Context(), "one")
	require.ErrorIs(t, err, store.ErrNotFound)
	invited, err := r.InviteCollector(t.Context(), invitation("one"), hashOf("invitation"), time.Hour, false)
	require.NoError(t, err)
	require.Nil(t, invited.EnrolledAt)
	require.WithinDuration(t, invited.InvitedAt.Add(time.Hour), invited.ExpiresAt, time.Second)
	want := invitation("one")
	want.InvitedAt, want.ExpiresAt = invited.InvitedAt, invited.ExpiresAt
	require.Equal(t, want, invited)

	_, err = r.EnrollCollector(t.Context(), hashOf("guessed"), hashOf("own"))
	require.ErrorIs(t, err, store.ErrNotFound)
	enrolled, err := r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("own"))
	require.NoError(t, err)
	require.NotNil(t, enrolled.EnrolledAt)
	p, err := r.PrincipalOf(t.Context(), hashOf("own"))
	require.NoError(t, err)
	require.Equal(t, store.Principal{Kind: "collector", Owner: "one", Role: "collector", Collector: "one", Token: p.Token}, p)

	// If the answer was lost, the exchange can be repeated, even late. Another machine
	// cannot use the token.
	r.execute(`update collector_invitation set expires_at = now() - interval '1 hour'`)
	again, err := r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("own"))
	require.NoError(t, err)
	require.Equal(t, enrolled.EnrolledAt, again.EnrolledAt)
	_, err = r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("another's"))
	require.ErrorIs(t, err, store.ErrEnrolled)

	// Another machine gets the name only with replace; until it has enrolled, the first
	// one stays.
	_, err = r.InviteCollector(t.Context(), invitation("one"), hashOf("second"), time.Hour, false)
	require.ErrorIs(t, err, store.ErrEnrolled)
	_, err = r.InviteCollector(t.Context(), invitation("one"), hashOf("second"), time.Hour, true)
	require.NoError(t, err)
	_, err = r.PrincipalOf(t.Context(), hashOf("own"))
	require.NoError(t, err)
	_, err = r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("own"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.EnrollCollector(t.Context(), hashOf("second"), hashOf("new"))
	require.NoError(t, err)
	_, err = r.PrincipalOf(t.Context(), hashOf("own"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.PrincipalOf(t.Context(), hashOf("new"))
	require.NoError(t, err)

	// Removal leaves nothing.
	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	_, err = r.PrincipalOf(t.Context(), hashOf("new"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.Invitation(t.Context(), "one")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAnInvitationExpires(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, err := r.InviteCollector(t.Context(), store.Invitation{Name: "one", Target: target, SizeClass: 1, Pool: "main"}, hashOf("first"), time.Hour, false)
	require.NoError(t, err)
	r.execute(`update collector_invitation set expires_at = now() - interval '1 second'`)
	_, err = r.EnrollCollector(t.Context(), hashOf("first"), hashOf("own"))
	require.ErrorIs(t, err, store.ErrInvitationExpired)
	require.Zero(t, r.count(`select count(*) from access_token`))
	// A newer invitation replaces it.
	_, err = r.InviteCollector(t.Context(), invitation("one"), hashOf("second"), time.Hour, false)
	require.NoError(t, err)
	_, err = r.EnrollCollector(t.Context(), hashOf("second"), hashOf("own"))
	require.NoError(t, err)
}

func TestOnlyOneMachineEnrols(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, err := r.InviteCollector(t.Context(), invitation("one"), hashOf("invitation"), time.Hour, false)
	require.NoError(t, err)
	refused := 0
	for _, err := range together(4, func(i int) error {
		_, err := r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf(names(4)[i]))
		return err
	}) {
		if err != nil {
			require.ErrorIs(t, err, store.ErrEnrolled)
			refused++
		}
	}
	require.Equal(t, 3, refused)
	require.Equal(t, 1, r.count(`select count(*) from access_token where collector = 'one'`))
}

func TestAPoolsVersionOverridesTheGeneralOne(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	wanted := func() (string, bool) { c := r.register("one"); return c.WantedVersion, c.Outdated() }
	version, outdated := wanted()
	require.Empty(t, version)
	require.False(t, outdated)

	require.NoError(t, r.WantVersion(t.Context(), "", "v2", "ada"))
	version, outdated = wanted()
	require.Equal(t, "v2", version)
	require.True(t, outdated)
	require.NoError(t, r.WantVersion(t.Context(), small.Name, collector("one").Version, "ada"))
	version, outdated = wanted()
	require.Equal(t, collector("one").Version, version)
	require.False(t, outdated)

	all, err := r.WantedVersions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "v2", all[0].Version)
	require.Empty(t, all[0].Pool)
	require.Equal(t, "ada", all[1].SetBy)

	require.NoError(t, r.WantVersion(t.Context(), small.Name, "", "ada"))
	version, _ = wanted()
	require.Equal(t, "v2", version)
	require.NoError(t, r.WantVersion(t.Context(), "", "", "ada"))
	all, err = r.WantedVersions(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestJobsWaitingCountsJobsNotBegun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	count := func() int {
		n, err := r.JobsWaiting(t.Context(), []string{"bench/elsewhere", small.TaskQueue()})
		require.NoError(t, err)
		return n
	}
	require.Zero(t, count())
	_, job := r.oneJob("v1", "gin")
	require.Equal(t, 1, count())
	c := r.register("one")
	r.start(job, 1, c)
	require.Zero(t, count())
}
