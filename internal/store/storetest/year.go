package storetest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// YearProject is the project of [FillYear].
const YearProject = "load"

// FillYear fills the record at a URL from [URL] with a year of small requests, evenly
// spread until now: of 20 requests 12 run one command, 5 are try builds, 2 commits and one
// measures an artifact ad hoc, half of them one that a commit has measured; besides, two
// collectors have a canary a day, for 20,000 requests. One request of 97 is open.
//
// A run has a log of 16 kB. A command has one iteration with 10 values, other jobs three
// test cases with five iterations and eight values each.
func FillYear(t *testing.T, url string, requests int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connecting to the test's record: %v", err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range year {
		if _, err := conn.Exec(t.Context(), `select set_config('year.requests', $1::int::text, false)`, requests); err != nil {
			t.Fatalf("filling a year: %v", err)
		}
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("filling a year: %v: %s", err, sql)
		}
	}
}

// year fills the tables one after the other. A temporary table says what each request is.
var year = []string{
	`create function pg_temp.noise(bytes int) returns text language sql volatile as
		$$ select string_agg(md5(random()::text), '') from generate_series(1, bytes / 32) $$`,
	`create temporary table wish as
		with n as (select current_setting('year.requests')::int as n)
		select i, case when i % 20 < 12 then 'command' when i % 20 < 17 then 'try' when i % 20 < 19 then 'master' else 'adhoc' end as what,
			'r' || lpad(i::text, 10, '0') as request, 'key' || lpad(i::text, 13, '0') as key, 'run' || i as run,
			now() - interval '365 days' * (1 - i / n::float8) as at, i % 97 = 5 as open,
			case when i % 20 < 12 then 'key' || lpad(i::text, 13, '0') when i % 20 < 17 then 'try' || i when i % 20 < 19 then 'sha' || i
				when i % 40 = 19 then 'own' || i else 'sha' || i - 1 end as tag,
			case when i % 20 < 12 then 1 else 3 end as cases, case when i % 20 < 12 then 1 else 5 end as iterations,
			case when i % 20 < 12 then 10 else 8 end as metrics, 'suite' || (i - 1) * 100 / n as suite, false as canary
		from n cross join generate_series(1, n) i
		union all
		select 1000000 + i, 'canary', 'rc' || lpad(i::text, 9, '0'), 'canary' || lpad(i::text, 10, '0'), 'canary' || i,
			now() - interval '365 days' * (1 - i / (n * 730 / 20000)::float8), false, 'sha' || ((i % greatest(n / 20, 1)) * 20 + 17), 3, 14, 6, 'suite99', true
		from n cross join generate_series(1, n * 730 / 20000) i`,
	`insert into suite_bundle (hash, name, archive, created_at)
		select 'suite' || i, 'load', convert_to(pg_temp.noise(50000), 'UTF8'), now() - interval '365 days' * (1 - i / 100.0) from generate_series(0, 99) i`,
	`insert into suite_bundle (hash, name, archive, created_at)
		select 'tried' || i, 'load', convert_to(pg_temp.noise(50000), 'UTF8'), now() - interval '365 days' * (1 - i / 100.0) from generate_series(0, 99) i`,
	`insert into project (name, config, suite_hash) values ('load', '{}', 'suite99')`,
	`insert into artifact (project, tag, created_at)
		select 'load', tag, min(at) from (select tag, at from wish union all select tag || '+canary', at from wish where canary) t group by tag`,
	`insert into benchmark_request (id, project, type, tag, parent, pr, commit_date, status, outcome, submitter, command, deferred, created_at, workflow_started_at,
			admitted_at, expanded_at, jobs_done_at, completed_at, baseline, versus, summary, message)
		select request, 'load', case what when 'command' then 'adhoc' when 'canary' then 'adhoc' else what end, case when what <> 'command' then tag end,
			case when what in ('try', 'master') then 'sha' || greatest(17, i / 20 * 20 - 3) end, case when what = 'try' then i end, at,
			case when open then 'in_progress' else 'completed' end, case when not open then 'success' end, case when canary then 'canary' else 'ada' end,
			case when what = 'command' then '{"argv": ["./measure", "--once"], "iterations": 1}'::jsonb end, what = 'command', at, at, at, at,
			case when not open then at + interval '10 minutes' end, case when not open then at + interval '11 minutes' end,
			case when what in ('try', 'master') then 'sha' || greatest(17, i / 20 * 20 - 3) end, case when canary then tag || '+canary' end,
			case when what in ('try', 'master') then '{"rows": 24, "changed": 0, "text": "no suspicion"}'::jsonb end, 'done'
		from wish`,
	`insert into artifact_notice (request_id, tag, first_at, last_at) select request, tag, at, at from wish where what = 'try'`,
	`insert into job_queue (project, key, tag, artifact_id, versus, versus_artifact_id, kind, target, suite_hash, test_cases, iterations, command, size_class, pool, task_queue, queue,
			status, request_created, created_at, handed_out_at, started_at, completed_at, submitter, submitted_with, shape)
		select 'load', w.key, case when what <> 'command' then w.tag end, a.id, case when canary then w.tag || '+canary' end, v.id,
			case what when 'command' then 'command' else 'runtime' end, 'x86_64-unknown-linux-gnu', case when what <> 'command' then suite end,
			(select jsonb_agg(jsonb_build_object('benchmark', case what when 'command' then 'command' else 'bench-' || c end, 'target', 'x86_64-unknown-linux-gnu')) from generate_series(1, cases) c),
			iterations, case when what = 'command' then '{"argv": ["./measure", "--once"], "iterations": 1}'::jsonb end, 1, 'main', 'bench/x86_64-unknown-linux-gnu/1/main',
			case what when 'command' then 'user:ada' else 'project:load' end, case when open then 'in_progress' else 'success' end, at, at, at, at,
			case when not open then at + interval '9 minutes' end, 'ada', case when what = 'command' then request end,
			case when what = 'command' then 'shape' || i % (select greatest(1, current_setting('year.requests')::int / 20)) else '' end
		from wish w join artifact a on a.project = 'load' and a.tag = w.tag left join artifact v on canary and v.project = 'load' and v.tag = w.tag || '+canary'
		order by i`,
	`insert into request_job (request_id, job_id, stage) select w.request, j.id, 'own' from wish w join job_queue j on j.key = w.key`,
	`insert into job_run (id, job_id, number, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, outcome, message, output_tail, progress, log_size,
			started_at, finished_at)
		select run, j.id, 1, 'scheduled', 1, 'main', 'c' || i % 2, 1, 'v1', 'cpu0', false,
			jsonb_build_object('cpu', 'AMD EPYC', 'kernel', '6.18', 'governor', 'performance', 'flags', pg_temp.noise(800)),
			case when open then '' else 'success' end, '', pg_temp.noise(1000), jsonb_build_object('phase', 'uploading', 'done', cases, 'test_case', 'bench-1'), 16000,
			at, case when not open then at + interval '8 minutes' end
		from wish w join job_queue j on j.key = w.key`,
	`insert into run_log (run_id, at_offset, data) select run, piece * 8000, convert_to(pg_temp.noise(8000), 'UTF8') from wish cross join generate_series(0, 1) piece`,
	`insert into error (run_id, context, kind, message, output_tail, created_at) select run, 'job', 'job', 'exit status 1', pg_temp.noise(1000), at from wish where i % 20 = 3`,
	`insert into test_case (project, benchmark, profile, scenario, backend, target)
		select 'load', name, '', '', '', 'x86_64-unknown-linux-gnu' from unnest(array['command', 'bench-1', 'bench-2', 'bench-3']) name`,
	`insert into pstat_series (test_case_id, metric) select id, 'metric-' || m from test_case cross join generate_series(1, 10) m where project = 'load'`,
	`insert into job_test_case (job_id, test_case_id, place, artifact_id)
		select j.id, tc.id, c, side from wish w join job_queue j on j.key = w.key cross join generate_series(1, cases) c
		join test_case tc on tc.project = 'load' and tc.benchmark = case what when 'command' then 'command' else 'bench-' || c end
		cross join unnest(array[j.artifact_id, j.versus_artifact_id]) side where side is not null`,
	// Ad-hoc measurements of a commit that is measured are another generation of its results.
	`insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, created_at, in_turns)
		select jt.artifact_id, jt.test_case_id, 1, 'cpu0', false, w.i, w.run, 'ok', w.at, w.canary
		from wish w join job_queue j on j.key = w.key join job_test_case jt on jt.job_id = j.id`,
	`insert into collection (result_id, iteration, collected_at, facts)
		select r.id, n, w.at, '{"load": 0.1, "steal": 0, "duration_seconds": 1.25}'
		from wish w join test_result r on r.run_id = w.run cross join lateral generate_series(1, w.iterations) n`,
	`insert into pstat_runtime (series_id, artifact_id, collection_id, value)
		select s.id, r.artifact_id, c.id, random() from wish w join test_result r on r.run_id = w.run join collection c on c.result_id = r.id
		join pstat_series s on s.test_case_id = r.test_case_id and substr(s.metric, 8)::int <= w.metrics`,
	`insert into comparison (request_id, artifact_id, baseline_id, mode, rule_version, family_size, state, budget_seconds, created_at, decided_at)
		select w.request, a.id, b.id, 'suspects', 1, 0, 'decided', 600, w.at, w.at
		from wish w join benchmark_request r on r.id = w.request join artifact a on a.project = 'load' and a.tag = w.tag
		join artifact b on b.project = 'load' and b.tag = r.baseline where not w.open and a.id <> b.id`,
	`insert into comparison_verdict (comparison_id, test_case_id, metric, size_class, hardware_id, co_located, suspected, measured, delta, verdict)
		select c.id, tc.id, 'metric-1', 1, 'cpu0', false, false, false, 0.01, 'no suspicion' from comparison c join test_case tc on tc.project = 'load' and tc.benchmark <> 'command'`,
	`insert into canary (collector, slot, request_id, outcome, created_at, ended_at)
		select 'c' || i % 2, date_trunc('day', at) + interval '1 hour' * (i % 20), request, 'passed', at, at + interval '10 minutes' from wish where canary`,
	`insert into collector_config (name, target, size_class, pool, machine_id, epoch, version, hardware_id, facts, co_located)
		select 'c' || i, 'x86_64-unknown-linux-gnu', 1, 'main', 'm' || i, 1, 'v1', 'cpu0', '{}', false from generate_series(0, 1) i`,
	`insert into size_statistics (project, shape, version, statistics, about, updated_at)
		select 'load', shape, 1, jsonb_build_object('attempts', pg_temp.noise(500)), '{}', max(request_created) from job_queue where shape <> '' group by shape`,
	`insert into audit (at, who, action, project, subject, reason, result) select at, 'ada', 'retrigger', 'load', request, 'the disk was full', '{"changed": true}' from wish where i % 10 = 0`,
	`analyze`,
}
