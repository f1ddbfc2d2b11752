package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// randomWork fills the record with jobs of random queues and users at two pools and
// the set of some collectors, and with runs at random times of the last two hours.
func (r record) randomWork(jobs int) {
	r.t.Helper()
	request := r.inProgress(release(r.t, "v1"))
	r.expand(request, newJob(request, "gin"))
	r.execute(`delete from request_job`)
	r.execute(`delete from job_queue`)
	r.execute(`
		insert into collector_config (name, target, size_class, pool, machine_id, epoch, version, hardware_id, facts, co_located, host)
		select 'c' || i, $1, 1 + i % 2, 'p', 'm', i, '1', 'zen4', '{}', i > 4, case when i > 4 then 'shared' else '' end
		from generate_series(1, 6) i`, target)
	r.execute(`insert into collector_set (task_queue, target, size_class, collectors) values ('bench/set', $1, 1, '{c2,c4,gone}')`, target)
	r.execute(`
		insert into queue_config (name, class, weight, level, updated_by)
		values ('vip', 'strict', 1, 1, 'ada'), ('user:u1', 'weighted', 5, 3, 'ada'), ('user:nobody', 'weighted', 2.5, 3, 'ada')`)
	r.execute(`
		with drawn as (
			select i, random() as a, random() as b, random() as c, random() as d, random() as e from generate_series(1, $2::int) i
		)
		insert into job_queue (project, key, artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, queue, submitter,
			status, request_created, created_at, started_at, completed_at)
		select $3, 'j' || i, (select id from artifact limit 1), 'command', $1, '[]', 1, 1, 'p',
			case when d < 0.2 then 'bench/set' else 'bench/' || $1 || '/' || case when d < 0.6 then 1 else 2 end || '/p' end,
			case when a < 0.1 then 'vip' else 'user:u' || floor(a * 5) end, 'u' || floor(b * 4), status, now() - c * interval '3 hours',
			now() - c * interval '3 hours', case when status in ('queued', 'handed_out') and i % 7 > 0 then null else now() end,
			case when status = 'success' then now() end
		from drawn cross join lateral (
			select case when e < 0.5 then 'success' when e < 0.7 then 'queued' when e < 0.85 then 'handed_out' else 'in_progress' end as status
		) s`, target, jobs, project)
	// A job that has begun has had one to three runs; the last run of a third of those in
	// progress is open.
	r.execute(`
		insert into job_run (id, job_id, number, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, outcome,
			started_at, finished_at)
		select j.key || '-' || n, j.id, n, 'scheduled', 1 + j.id % 2, 'p', 'c' || (j.id + n) % 8, 1, '1', 'zen4', false, '{}',
			case when going then '' else 'lost' end, j.created_at + n * interval '17 minutes' * random(),
			case when not going then j.created_at + n * interval '20 minutes' end
		from job_queue j cross join lateral generate_series(1, 1 + j.id % 3) n
		cross join lateral (select j.status = 'in_progress' and n = 1 + j.id % 3 and j.key like '%1' as going) g
		where j.started_at is not null or j.status in ('success', 'in_progress')`)
	// No run begins at the window's edge, which moves while the test runs.
	r.execute(`update job_run set started_at = started_at - interval '11 minutes'
		where started_at between now() - interval '65 minutes' and now() - interval '55 minutes'`)
	r.execute(`update job_queue j set started_at = coalesce(started_at, created_at) where exists (select from job_run n where n.job_id = j.id)`)
}

// byHand computes a share with simple statements that read the whole record for each
// name.
func (r record) byHand(conn *pgx.Conn, by store.ShareBy, name string) store.Share {
	r.t.Helper()
	ofRun := map[store.ShareBy]string{
		store.ByQueue: `j.queue = $1`, store.ByUser: `j.submitter = $1`,
		store.ByPool: `format('bench/%s/%s/%s', j.target, n.size_class, n.pool) = $1`,
		store.ByHost: `coalesce((select nullif(host, '') from collector_config where name = n.collector), n.collector) = $1`,
	}[by]
	ofJob := map[store.ShareBy]string{
		store.ByQueue: `j.queue = $1`, store.ByUser: `j.submitter = $1`, store.ByPool: `j.task_queue = $1`,
		store.ByHost: `exists (select from collector_config c where $1 in (c.host, case when c.host = '' then c.name end)
			and (j.task_queue = format('bench/%s/%s/%s', c.target, c.size_class, c.pool)
				or exists (select from collector_set s where s.task_queue = j.task_queue and c.name = any(s.collectors))))`,
	}[by]
	const runs = ` from job_run n join job_queue j on j.id = n.job_id where `
	const recent = ` and n.started_at > now() - interval '1 hour'`
	const open = ` from job_queue j where j.status in ('queued', 'handed_out', 'in_progress')
		and j.id not in (select job_id from job_run where outcome = '') and `
	s := store.Share{Name: name}
	get := func(into any, sql string, args ...any) {
		require.NoError(r.t, conn.QueryRow(r.t.Context(), sql, args...).Scan(into), sql)
	}
	get(&s.Started, `select count(*)`+runs+ofRun+recent, name)
	get(&s.Received, `select $1::int / nullif(count(*), 0)::float8 from job_run n where true`+recent, s.Started)
	get(&s.Running, `select count(*)`+runs+ofRun+` and n.outcome = ''`, name)
	get(&s.Queued, `select count(*)`+open+ofJob+` and j.status = 'queued'`, name)
	get(&s.HandedOut, `select count(*)`+open+ofJob+` and j.status <> 'queued'`, name)
	get(&s.OldestSince, `select min(coalesce((select max(finished_at) from job_run where job_id = j.id), j.created_at))`+open+ofJob, name)
	if s.OldestSince != nil {
		*s.OldestSince = s.OldestSince.UTC()
	}
	const wait = `greatest(0, extract(epoch from n.started_at - coalesce(
		(select finished_at from job_run b where b.job_id = j.id and b.number = n.number - 1), j.created_at)))`
	var waits []float64
	get(&waits, `select coalesce(array_agg(w order by w), '{}') from (select `+wait+`::float8 as w`+runs+ofRun+recent+`) x`, name)
	s.WaitMedian, s.Wait90, s.WaitMax = percentile(waits, 0.5), percentile(waits, 0.9), percentile(waits, 1)
	if by != store.ByQueue {
		return s
	}
	get(&s.Class, `select coalesce((select class from queue_config where name = $1), 'weighted')`, name)
	get(&s.Weight, `select coalesce((select weight from queue_config where name = $1), 1)::numeric::float8`, name)
	get(&s.Level, `select coalesce((select level from queue_config where name = $1), 3)`, name)
	if s.Class == "weighted" && s.Queued+s.HandedOut+s.Running > 0 {
		get(&s.Entitled, `select $1 / sum(coalesce(q.weight, 1)) from (select distinct queue from job_queue
			where status in ('queued', 'handed_out', 'in_progress')
				or id in (select job_id from job_run where outcome = '')) j left join queue_config q on q.name = j.queue
			where coalesce(q.class, 'weighted') = 'weighted'`, s.Weight)
	}
	return s
}

// percentile returns an interpolated percentile of sorted values; nil if there are none.
func percentile(sorted []float64, p float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	at := p * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	v := sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
	return &v
}

func TestSharesAgreeWithSQL(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.randomWork(800)
	conn, err := pgx.Connect(t.Context(), r.url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for by, names := range map[store.ShareBy][]string{
		store.ByQueue: {"user:nobody", "user:u0", "user:u1", "user:u2", "user:u3", "user:u4", "vip"},
		store.ByUser:  {"u0", "u1", "u2", "u3"},
		store.ByPool:  {"bench/set", "bench/" + string(target) + "/1/p", "bench/" + string(target) + "/2/p"},
		store.ByHost:  {"c0", "c1", "c2", "c3", "c4", "c7", "shared"},
	} {
		shares, err := r.Shares(t.Context(), by, time.Hour)
		require.NoError(t, err)
		var found []string
		for _, s := range shares {
			found = append(found, s.Name)
			want := r.byHand(conn, by, s.Name)
			for _, pair := range [][2]*float64{
				{want.Entitled, s.Entitled}, {want.Received, s.Received}, {want.WaitMedian, s.WaitMedian}, {want.Wait90, s.Wait90}, {want.WaitMax, s.WaitMax},
			} {
				require.Equal(t, pair[0] == nil, pair[1] == nil, "%s %+v", s.Name, s)
				if pair[0] != nil {
					require.InDelta(t, *pair[0], *pair[1], 1e-6, s.Name)
				}
			}
			for _, x := range []*store.Share{&want, &s} {
				x.Entitled, x.Received, x.WaitMedian, x.Wait90, x.WaitMax = nil, nil, nil, nil, nil
			}
			require.Equal(t, want, s, by)
		}
		require.Equal(t, names, found, by)
	}
	_, err = r.Shares(t.Context(), "moon", time.Hour)
	require.ErrorContains(t, err, `no shares by "moon"`)
}

func TestSharesOfNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	shares, err := r.Shares(t.Context(), store.ByQueue, time.Hour)
	require.NoError(t, err)
	require.Empty(t, shares)
}

func TestConfiguredSharesOfBusyQueuesAddUpToOne(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.randomWork(200)
	shares, err := r.Shares(t.Context(), store.ByQueue, time.Hour)
	require.NoError(t, err)
	sum, received := 0.0, 0.0
	for _, s := range shares {
		if s.Entitled != nil {
			require.Equal(t, "weighted", s.Class)
			sum += *s.Entitled
		}
		received += *s.Received
	}
	require.InDelta(t, 1, sum, 1e-9)
	require.InDelta(t, 1, received, 1e-9)
}
