package fairshare_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/waittime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func set[T any](v T) *T { return &v }

func TestQueueSettings(t *testing.T) {
	t.Parallel()
	const strict, weighted = fairshare.Strict, fairshare.Weighted
	for name, c := range map[string]struct {
		in    fairshare.QueueSetting
		want  fairshare.Queue
		wrong string
	}{
		"a name":             {in: fairshare.QueueSetting{Name: "single-build"}, want: fairshare.Queue{Name: "single-build", Class: weighted, Weight: 1, Level: 3}},
		"a weight":           {in: fairshare.QueueSetting{Name: "user:ada@example.org", Weight: set(0.1)}, want: fairshare.Queue{Name: "user:ada@example.org", Class: weighted, Weight: 0.1, Level: 3}},
		"strict":             {in: fairshare.QueueSetting{Name: "nightly", Class: strict, Level: set(4)}, want: fairshare.Queue{Name: "nightly", Class: strict, Weight: 1, Level: 4}},
		"vip as it is":       {in: fairshare.QueueSetting{Name: "vip", Class: strict, Level: set(1)}, want: fairshare.Queue{Name: "vip", Class: strict, Weight: 1, Level: 1}},
		"idle":               {in: fairshare.QueueSetting{Name: "idle"}, want: fairshare.Queue{Name: "idle", Class: strict, Weight: 1, Level: 5}},
		"weight 0":           {in: fairshare.QueueSetting{Name: "q", Weight: set(0.0)}, wrong: `weight 0 of queue "q"; use 0.1 to 1000: weights are relative to each other; to hold its jobs back`},
		"negative":           {in: fairshare.QueueSetting{Name: "q", Weight: set(-1.0)}, wrong: "weight -1"},
		"no number":          {in: fairshare.QueueSetting{Name: "q", Weight: set(math.NaN())}, wrong: "weight NaN"},
		"infinite":           {in: fairshare.QueueSetting{Name: "q", Weight: set(math.Inf(1))}, wrong: "weight +Inf"},
		"1e9":                {in: fairshare.QueueSetting{Name: "q", Weight: set(1e9)}, wrong: "weight 1e+09 of queue"},
		"weighted and level": {in: fairshare.QueueSetting{Name: "q", Level: set(2)}, wrong: "is weighted and has level 2"},
		"strict and weight":  {in: fairshare.QueueSetting{Name: "q", Class: strict, Level: set(1), Weight: set(2.0)}, wrong: "leave the weight out"},
		"strict, no level":   {in: fairshare.QueueSetting{Name: "q", Class: strict}, wrong: "has no level"},
		"strict in between":  {in: fairshare.QueueSetting{Name: "q", Class: strict, Level: set(3)}, wrong: "(3 is theirs)"},
		"strict, level 6":    {in: fairshare.QueueSetting{Name: "q", Class: strict, Level: set(6)}, wrong: "has level 6"},
		"another class":      {in: fairshare.QueueSetting{Name: "q", Class: "fast"}, wrong: "use weighted or strict"},
		"vip made weighted":  {in: fairshare.QueueSetting{Name: "vip", Class: weighted}, wrong: "always strict, of level 1"},
		"idle with a weight": {in: fairshare.QueueSetting{Name: "idle", Weight: set(1.0)}, wrong: "always strict, of level 5"},
		"no name":            {in: fairshare.QueueSetting{}, wrong: "user:ACCOUNT, project:NAME"},
		"nobody's":           {in: fairshare.QueueSetting{Name: "user:"}, wrong: "user:ACCOUNT, project:NAME"},
		"a space":            {in: fairshare.QueueSetting{Name: "user:a b"}, wrong: "white space"},
		"capitals":           {in: fairshare.QueueSetting{Name: "Fast"}, wrong: "lower-case"},
		"too long":           {in: fairshare.QueueSetting{Name: "user:" + strings.Repeat("a", 60)}, wrong: "at most 64 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.in.Queue()
			if c.wrong != "" {
				require.ErrorIs(t, err, bench.ErrInvalid)
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestCheckReportsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := fairshare.File{
		Queues: []fairshare.QueueSetting{{Name: "a", Weight: set(0.0)}, {Name: "b"}, {Name: "b"}},
		Accounts: []fairshare.AccountLimit{
			{}, {Account: "ada", MaxRunning: set(0)}, {Account: "ada", MaxQueued: set(-1)}, {Account: "ada", FirstLevel: 6},
			{Account: "ada", Branch: "dev", MaxRunning: set(1)}, {Account: "bob"}, {Account: "bob", Branch: "*"}, {Account: "eve", Branch: "a b"}, {Account: "a b"},
		},
	}.Check()
	for _, text := range []string{
		"weight 0", `queue "b" is configured twice`, "a limit without an account", "max_running 0", "max_queued -1", "first_level 6", "which count over all branches",
		`limit of account "bob" on branch "*" is configured twice`, `branch "a b"`, `account "a b" holds white space`,
	} {
		require.ErrorContains(t, err, text)
	}
	c, err := fairshare.File{Queues: []fairshare.QueueSetting{{Name: "a"}}, Accounts: []fairshare.AccountLimit{{Account: "*", MaxQueued: set(3)}}}.Check()
	require.NoError(t, err)
	require.Equal(t, fairshare.Config{
		Queues: []fairshare.Queue{{Name: "a", Class: fairshare.Weighted, Weight: 1, Level: 3}},
		Limits: fairshare.Limits{{Account: "*", Branch: "*", MaxQueued: set(3), FirstLevel: 1}},
	}, c)
}

// Whatever is written: what is taken can be given to Temporal, what is not is
// refused as invalid.
func FuzzSetting(f *testing.F) {
	f.Add(`{"name":"user:ada","weight":50}`)
	f.Add(`{"name":"vip","class":"strict","level":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s fairshare.QueueSetting
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		q, err := s.Queue()
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.NotEmpty(t, q.Name)
		require.LessOrEqual(t, len(q.Name), 64)
		require.True(t, q.Weight >= 0.1 && q.Weight <= 1000)
		require.Equal(t, q.Class == fairshare.Weighted, q.Level == 3)
		require.True(t, q.Level >= 1 && q.Level <= 5)
	})
}

func TestTheWaitObjectiveOfAQueue(t *testing.T) {
	t.Parallel()
	require.Equal(t, waittime.DefaultObjective, fairshare.Default("night").Objective())
	for _, queue := range []fairshare.QueueSetting{{Name: "night"}, {Name: fairshare.VIP}} {
		queue.WaitObjective = "1h30m"
		q, err := queue.Queue()
		require.NoError(t, err)
		require.Equal(t, 90*time.Minute, q.Objective())
	}
	for _, wrong := range []string{"soon", "0s", "-1m", "1500ms", "168h1s", "15"} {
		_, err := fairshare.QueueSetting{Name: "night", WaitObjective: wrong}.Queue()
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, wrong)
	}
}

// Accounts are at their limits when they may have no further job under way.
func TestAccountsAtTheirLimits(t *testing.T) {
	t.Parallel()
	s := fairshare.NewSelection([]fairshare.Backlog{{Queue: "user:ada"}}, nil, func(fairshare.Class) int { return 5 })
	s.Limit("ada", 1)
	s.Limit("bob", 0)
	s.Limit("eve", fairshare.Unlimited)
	full, others := s.AtLimit()
	require.Equal(t, [][]string{{"bob"}, {"ada", "eve"}}, [][]string{full, others})
	chosen, _ := s.Sift([]fairshare.Candidate{{ID: 1, Job: fairshare.Job{Queue: "user:ada", Submitter: "ada"}, InTurn: true}})
	require.Len(t, chosen, 1)
	full, others = s.AtLimit()
	require.Equal(t, [][]string{{"ada", "bob"}, {"eve"}}, [][]string{full, others})
}
