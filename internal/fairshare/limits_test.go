package fairshare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/fairshare"
)

func TestOwnLimitReplacesTheDefault(t *testing.T) {
	t.Parallel()
	limits := fairshare.Limits{{Account: "ada", Branch: "*", MaxRunning: set(9), FirstLevel: 1}, {Account: "*", Branch: "*", MaxRunning: set(2), MaxQueued: set(5), FirstLevel: 1}}
	require.Equal(t, 2, *limits.Of("bob").MaxRunning)
	require.Equal(t, 9, *limits.Of("ada").MaxRunning)
	require.Nil(t, limits.Of("ada").MaxQueued)
	require.Nil(t, fairshare.Limits(nil).Of("ada").MaxRunning)
}

func TestKnownLimitsStay(t *testing.T) {
	t.Parallel()
	known := fairshare.Limits{{Account: "ada", Branch: "*", FirstLevel: 2}}
	more := fairshare.Limits{{Account: "ada", Branch: "*", FirstLevel: 5}, {Account: "ada", Branch: "dev", FirstLevel: 3}, {Account: "*", Branch: "*", FirstLevel: 1}}
	require.Equal(t, fairshare.Limits{known[0], more[1], more[2]}, known.Add(more))
}

func TestFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most   *int
		under  fairshare.Load
		served bool
		want   int
	}{
		"no limit":                       {nil, fairshare.Load{Jobs: 5}, true, fairshare.Unlimited},
		"some":                           {set(3), fairshare.Load{Jobs: 1}, true, 2},
		"at the limit":                   {set(3), fairshare.Load{Jobs: 3}, true, 0},
		"above a limit that was lowered": {set(3), fairshare.Load{Jobs: 5}, true, 0},
		"stranded jobs do not count":     {set(3), fairshare.Load{Jobs: 4, Stranded: 3}, true, 2},
		"but where nobody takes more":    {set(3), fairshare.Load{Jobs: 4, Stranded: 3}, false, 0},
		"without a collector, some":      {set(3), fairshare.Load{Jobs: 1}, false, 2},
		"without a collector or a limit": {nil, fairshare.Load{Jobs: 1}, false, fairshare.Unlimited},
	} {
		require.Equal(t, c.want, fairshare.AccountLimit{MaxRunning: c.most}.Free(c.under, c.served), name)
	}
}

func TestMayWait(t *testing.T) {
	t.Parallel()
	require.NoError(t, fairshare.AccountLimit{}.MayWait("ada", 1_000_000, 1))
	limit := fairshare.AccountLimit{MaxQueued: set(10)}
	require.NoError(t, limit.MayWait("ada", 10, 4), "the new ones are counted already")
	err := limit.MayWait("ada", 11, 4)
	var full *fairshare.TooManyWaiting
	require.ErrorAs(t, err, &full)
	require.Equal(t, fairshare.TooManyWaiting{Account: "ada", Most: 10, Waiting: 7, More: 4}, *full)
}
