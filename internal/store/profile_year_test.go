package store_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
	packing "github.com/benchloom/benchloom/internal/profiler/columns"
)

// keeper keeps uploads.
type keeper chan profiler.Upload

func (k keeper) Send(_ context.Context, u profiler.Upload) error {
	k <- u
	return nil
}

// sampledHere are ten seconds of this machine and of the control group of the test, as an agent sends them.
func sampledHere(t *testing.T) profiler.Upload {
	t.Helper()
	sent := make(keeper, 4)
	own := machine.Group{Unified: "/sys/fs/cgroup"}
	if _, err := os.Stat(filepath.Join(own.Unified, "cgroup.controllers")); err != nil {
		own.Unified = "/sys/fs/cgroup/unified"
	}
	agent, err := profiler.New(profiler.Config{
		Settings: profiler.Settings{Enabled: true, SystemMetrics: true}, Attempt: "a1", Host: "m1",
		Job:     profiler.JobCollectors(machine.NewGroupReader(own)),
		Machine: profiler.MachineCollectors(machine.NewReader(machine.Config{Root: "/", CPUs: []int{0, 1}, KeepOpen: true, Now: time.Now}), machine.NewThermometer("/")),
		Lock:    flock.New(filepath.Join(t.TempDir(), "lock")), Sender: sent, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	require.NoError(t, err)
	agent.Start(t.Context())
	defer agent.End()
	return <-sent
}

// yearOfRuns is the number of small runs in a year, of ten seconds each; more with BENCHLOOM_YEAR.
func yearOfRuns() int {
	if os.Getenv("BENCHLOOM_YEAR") != "" {
		return 20_000
	}
	return 2_000
}

// A run costs what docs/profiling.md says, and reading one is as quick beside a year of others as alone.
func TestLongAYearOfSamplesSlowsNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	run := r.running("1.0.0")
	u := sampledHere(t)
	values, packed := 0, 0
	for _, b := range u.Batches {
		bytes, err := packing.Pack(packing.Samples{Values: b.Values, Batches: b.Batches, Times: b.Times})
		require.NoError(t, err)
		values, packed = values+len(b.Values), packed+len(bytes)
	}
	r.sample(run, u)
	alone := r.blocksOfReading(run)
	require.Positive(t, alone)

	n := yearOfRuns()
	r.ageSamples("none", 0) // makes partitions of the past
	r.execute(`do $$ declare week timestamp; begin
		for i in 31..53 loop
			week := date_trunc('week', now() at time zone 'utc') - i * interval '7 days';
			execute format('create table %I partition of profile_batch for values from (%L) to (%L)',
				'profile_batch_' || to_char(week, 'YYYYMMDD'), week at time zone 'utc', (week + interval '7 days') at time zone 'utc');
		end loop; end $$`)
	r.execute(`insert into profile_attempt (run_id, name, project, host, number, part, began_at, bytes, absent, series)
		select 'run ' || i, name, project, host, number, part, now() - i * interval '1 year' / $1, bytes, absent, series from profile_attempt, generate_series(1, $1) i`, n)
	r.execute(`insert into profile_batch select a.began_at, a.id, b.part, b.series, b.sequence, b.samples
		from profile_attempt a, profile_batch b where a.run_id like 'run %'`)
	r.execute(`analyze profile_attempt, profile_batch`)
	size := r.count(`select (sum(pg_total_relation_size(inhrelid)) + pg_total_relation_size('profile_attempt'))::bigint from pg_inherits where inhparent = 'profile_batch'::regclass`)
	t.Logf("%d series, %.1f bytes a value; a run of ten seconds takes %d bytes with indexes, %d of them %.1f MB", len(u.Batches), float64(packed)/float64(values), size/n, n, float64(size)/1e6)
	require.Less(t, float64(packed), 13*float64(values))
	require.Less(t, size/n, 2*packed+4096)
	require.LessOrEqual(t, r.blocksOfReading(run), alone+30, "reading one run does not touch what others have")
}

var blocks = regexp.MustCompile(`shared (?:hit=(\d+))? ?(?:read=(\d+))?`)

// blocksOfReading counts the blocks that the statements behind a read of a run's samples touch.
func (r record) blocksOfReading(run any) int {
	r.t.Helper()
	conn := r.connect()
	defer func() { require.NoError(r.t, conn.Close(context.Background())) }()
	var id int64
	var begin time.Time
	require.NoError(r.t, conn.QueryRow(r.t.Context(), `select id, began_at from profile_attempt where run_id = $1`, run).Scan(&id, &begin))
	total := 0
	for sql, args := range map[string][]any{
		`select * from profile_attempt where run_id = $1 order by number`:                                                           {run},
		`select part, series, sequence, samples from profile_batch where began_at = $1 and attempt = $2 and part > 0 order by part`: {begin, id},
	} {
		rows, err := conn.Query(r.t.Context(), `explain (analyze, buffers, costs off, timing off, summary off) `+sql, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
		require.NoError(r.t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(r.t, err)
		for _, line := range lines { // the first one has the sum; those of planning come last
			if strings.Contains(line, "Buffers: ") {
				for _, n := range blocks.FindStringSubmatch(line)[1:] {
					touched, _ := strconv.Atoi("0" + n)
					total += touched
				}
				break
			}
		}
	}
	return total
}
