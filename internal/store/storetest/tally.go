package storetest

// Untallied selects, each as a line, the kinds of open jobs whose number differs from that
// of the tally. It returns no row where both agree, as they always must.
const Untallied = `
	with counted as (
		select concat_ws(' ', task_queue, queue, submitter, branch, submitted_with, status) as kind, count(*) as jobs
		from job_queue where status in ('queued', 'handed_out', 'in_progress') group by 1
	), tallied as (
		select concat_ws(' ', task_queue, queue, submitter, branch, nullif(batch, ''), status) as kind, sum(jobs) as jobs
		from job_tally group by 1 having sum(jobs) <> 0
	)
	select kind || ': ' || coalesce(c.jobs, 0) || ' jobs, the tally has ' || coalesce(t.jobs, 0)
	from counted c full join tallied t using (kind) where c.jobs is distinct from t.jobs order by 1`
