package store

import "github.com/benchloom/benchloom/internal/bench"

// SeriesNorms holds the medians of what the machine did during the undisturbed iterations
// of a test case. Nil: not known. Shares are of 1.
type SeriesNorms struct {
	bench.TestCase
	Interrupts     *float64
	CPUPressure    *float64
	MemoryPressure *float64
	IOPressure     *float64
	MHz            *float64
}

// norms selects the norms of the test cases of run $1, from their last eight undisturbed sessions
// on the run's size class and hardware. Test cases without any are left out.
var norms = `
		select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target,
			percentile_cont(0.5) within group (order by m.interrupts / nullif(m.elapsed * m.cpus, 0)) as interrupts,
			percentile_cont(0.5) within group (order by m.cpu_pressure) as cpu_pressure,
			percentile_cont(0.5) within group (order by m.memory_pressure) as memory_pressure,
			percentile_cont(0.5) within group (order by m.io_pressure) as io_pressure,
			percentile_cont(0.5) within group (order by m.mhz) as mhz
		from job_run n
		join test_case tc on tc.id in (select jt.test_case_id from job_test_case jt where jt.job_id = n.job_id)
		cross join lateral (
			select r.id from test_result r
			where r.test_case_id = tc.id and ` + countingResult + ` and not r.disturbed_session
				and r.size_class = n.size_class and r.hardware_id = n.hardware_id and r.co_located = n.co_located
			order by r.id desc limit 8) last
		join collection c on c.result_id = last.id and c.disturbed = '' and c.facts ? 'machine'
		cross join lateral (
			select interrupts_ns as interrupts, elapsed_ns as elapsed, cpus, cpu_pressure, memory_pressure, io_pressure, mhz
			from jsonb_to_record(c.facts -> 'machine') as read (interrupts_ns float8, elapsed_ns float8, cpus float8,
				cpu_pressure float8, memory_pressure float8, io_pressure float8, mhz float8)) m
		where n.id = $1
		group by tc.id
		order by tc.id`
