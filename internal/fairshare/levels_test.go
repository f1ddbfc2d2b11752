package fairshare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/fairshare"
)

func TestLevelRespectsAccountAndBranchLimits(t *testing.T) {
	t.Parallel()
	limits := fairshare.Limits{
		{Account: "*", Branch: "*", FirstLevel: 2}, {Account: "*", Branch: "dev", FirstLevel: 4},
		{Account: "ops", Branch: "*", FirstLevel: 1}, {Account: "ops", Branch: "dev", FirstLevel: 2},
		{Account: "eve", Branch: "*", FirstLevel: 5},
	}
	rules := fairshare.Rules{Limits: limits}
	vip, shared, idle := fairshare.Default("vip"), fairshare.Default("user:x"), fairshare.Default("idle")
	for _, c := range []struct {
		account, branch string
		q               fairshare.Queue
		want            int
	}{
		{"ops", "", vip, 1},
		{"ops", "main", vip, 1},
		{"ops", "dev", vip, 2},
		{"ada", "", vip, 2},
		{"ada", "main", vip, 2},
		{"ada", "dev", vip, 4},
		{"ada", "dev", shared, 4},
		{"ada", "", shared, 3},
		{"ada", "dev", idle, 5},
		{"eve", "", vip, 5},
		{"eve", "dev", vip, 5},
	} {
		require.Equal(t, c.want, rules.Level(fairshare.Job{Queue: c.q.Name, Submitter: c.account, Branch: c.branch}), "%s on %q in %s", c.account, c.branch, c.q.Name)
	}
	require.Equal(t, 1, fairshare.Rules{}.Level(fairshare.Job{Queue: vip.Name, Submitter: "ada", Branch: "dev"}))
}

// One queue is strict and of level 2, the others are weighted; bob's jobs on branch dev
// go last.
var rules = fairshare.Rules{
	Queues: fairshare.Queues{
		"nightly":  {Name: "nightly", Class: fairshare.Strict, Weight: 1, Level: 2},
		"user:ada": {Name: "user:ada", Class: fairshare.Weighted, Weight: 3, Level: 3},
	},
	Limits: fairshare.Limits{{Account: "bob", Branch: "dev", FirstLevel: 5}},
}

func TestEarliestLevelOfEachQueue(t *testing.T) {
	t.Parallel()
	require.Empty(t, rules.Earliest(nil))
	require.Equal(t, map[string]int{"nightly": 2, "user:ada": 3, "user:bob": 3, "idle": 5}, rules.Earliest([]fairshare.Job{
		{Queue: "user:bob", Submitter: "bob", Branch: "dev"}, {Queue: "user:bob", Submitter: "bob"}, {Queue: "user:bob", Submitter: "bob", Branch: "dev"},
		{Queue: "nightly", Submitter: "ada"}, {Queue: "user:ada", Submitter: "ada"}, {Queue: "idle", Submitter: "bob", Branch: "dev"},
	}))
}

func TestShareOfWeightedQueuesAtOneLevel(t *testing.T) {
	t.Parallel()
	ada, bob := fairshare.Job{Queue: "user:ada", Submitter: "ada"}, fairshare.Job{Queue: "user:bob", Submitter: "bob"}
	late, strict := fairshare.Job{Queue: "user:bob", Submitter: "bob", Branch: "dev"}, fairshare.Job{Queue: "nightly", Submitter: "ada"}
	for name, c := range map[string]struct {
		jobs []fairshare.Job
		want *float64
	}{
		"alone":                     {[]fairshare.Job{ada}, new(1.0)},
		"by weight":                 {[]fairshare.Job{ada, bob, ada}, new(0.75)},
		"beside a strict queue":     {[]fairshare.Job{strict, ada, bob}, new(0.75)},
		"beside a later job":        {[]fairshare.Job{ada, late}, nil},
		"without a job of its own":  {[]fairshare.Job{bob}, nil},
		"without any weighted jobs": {[]fairshare.Job{strict}, nil},
	} {
		require.Equal(t, c.want, rules.Share("user:ada", c.jobs), name)
	}
}

func TestMayAskRefusesEarlierLevels(t *testing.T) {
	t.Parallel()
	ada := fairshare.Job{Queue: "user:ada", Submitter: "ada", Branch: "dev"}
	require.NoError(t, rules.MayAsk("ada", ada))
	require.NoError(t, rules.MayAsk("bob", fairshare.Job{Queue: "idle", Submitter: "ada", Branch: "dev"}), "it goes last")
	require.NoError(t, rules.MayAsk("bob", fairshare.Job{Queue: "user:ada", Submitter: "ada"}), "of another branch")
	err := rules.MayAsk("bob", ada)
	var early *fairshare.TooEarly
	require.ErrorAs(t, err, &early)
	require.Equal(t, fairshare.TooEarly{Queue: "user:ada", Branch: "dev", Account: "bob", Level: 3, First: 5}, *early)
	require.ErrorContains(t, err, "jobs in queue user:ada go at level 3, but jobs of bob on branch dev may go at level 5 at the earliest")
}

func TestStrictQueuesStarveLaterOnes(t *testing.T) {
	t.Parallel()
	all := []fairshare.Queue{fairshare.Default("vip"), {Name: "late", Class: fairshare.Strict, Level: 4}, fairshare.Default("user:ada"), fairshare.Default("idle")}
	require.Equal(t, "while it has work, nothing of idle, late, user:ada starts", fairshare.Warning(all[0], all))
	require.Equal(t, "while it has work, nothing of idle starts", fairshare.Warning(all[1], all))
	require.Empty(t, fairshare.Warning(all[2], all))
	require.Empty(t, fairshare.Warning(all[3], all))
	for range 9 {
		all = append(all, fairshare.Default("user:x"))
	}
	require.Contains(t, fairshare.Warning(all[0], all), " and 7 more starts")
}
