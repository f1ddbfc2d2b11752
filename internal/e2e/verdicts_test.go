package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

const steadySuiteYAML = `name: steady
description: prints the number that its artifact says
artifact: {provider: directory, parameters: {path: "%[1]s/{tag}"}}
iterations: 5
procedures:
  runtime:
    measure: {run: [sh, "${suite}/print.sh", "${artifact}", "%[2]s"], output: benchfmt, metrics: [ns/op]}
benchmarks:
  - {name: steady, kind: runtime}
`

// newSteadySuite makes a suite of one benchmark that prints the artifact's number, its
// work, with a part per thousand that changes from one execution to the next.
func newSteadySuite(t *testing.T) shellSuite {
	t.Helper()
	s := newSuite(t)
	s.write(t, "suite.yaml", fmt.Sprintf(steadySuiteYAML, s.artifacts, s.logged()))
	s.write(t, "print.sh", `touch "$2"
n=$(($(wc -l < "$2") % 5))
echo "steady $(basename "$1")" >> "$2"
echo "BenchmarkSteady 1 $(cat "$1/work").00$n ns/op"
`)
	return s
}

// stored is a row of a comparison as it is stored.
type stored struct {
	metric, verdict        string
	change                 float64
	pairs, sessions, looks int
	family, rule           int
}

// verdicts reads the rows of a request's comparison, by metric.
func (s *stack) verdicts(t *testing.T, id bench.RequestID) map[string]stored {
	t.Helper()
	rows, err := s.database(t).Query(t.Context(), `
		select v.metric, coalesce(v.verdict, ''), v.change, v.pairs, v.sessions, c.look, c.family_size, c.rule_version
		from comparison c join comparison_verdict v on v.comparison_id = c.id
		where c.request_id = $1 and c.superseded_at is null`, string(id))
	require.NoError(t, err)
	defer rows.Close()
	out := make(map[string]stored)
	for rows.Next() {
		var r stored
		require.NoError(t, rows.Scan(&r.metric, &r.verdict, &r.change, &r.pairs, &r.sessions, &r.looks, &r.family, &r.rule))
		out[r.metric] = r
	}
	require.NoError(t, rows.Err())
	return out
}

// A release whose benchmark prints 10 % more has changed; its jobs' slot is free while
// that is decided, and the Web UI says which look it waits for. One that prints the same
// is suspected of nothing.
func TestASuspicionIsDecidedInTurns(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	steady := newSteadySuite(t)
	for tag, work := range map[string]int{"1.0.0": 100, "1.1.0": 110, "1.2.0": 110} {
		steady.artifact(t, tag, work)
	}
	s.applyProject(t, "steady", steady.dir, bench.ProjectConfig{Verify: bench.VerifySuspects})
	release := func(tag string) bench.RequestID {
		return s.submit(t, apiclient.NewRequest{Project: "steady", Type: bench.Release, Tag: tag}).ID
	}
	first := s.await(t, release("1.0.0"), ended)
	requireSuccess(t, first.Outcome, first)
	require.Empty(t, s.verdicts(t, first.ID), "there is nothing to compare it with")

	suspecting := s.hold(t, failpoint.Suspecting)
	slower := release("1.1.0")
	s.reached(t, failpoint.Suspecting)
	measuring := s.hold(t, failpoint.Measuring)
	suspecting()
	s.reached(t, failpoint.Measuring)
	s.checkVerifying(t, c, slower)
	d, err := s.api.Request(t.Context(), string(slower))
	require.NoError(t, err)
	require.NotNil(t, d.JobsDoneAt)
	require.Nil(t, d.EndedAt)
	next := release("1.2.0")
	s.awaitPhase(t, c, s.requestWorkflow(t, next), string(protocol.RequestInProgress))
	measuring()

	d = s.await(t, slower, ended)
	requireSuccess(t, d.Outcome, d)
	row := s.verdicts(t, slower)["ns/op"]
	require.Equal(t, "changed", row.verdict, "%+v", row)
	require.InDelta(t, 0.1, row.change, 0.001)
	require.GreaterOrEqual(t, row.pairs, 14)
	require.Equal(t, 4, row.sessions, "a young series needs four looks")
	require.GreaterOrEqual(t, row.looks, row.sessions, "times of its process may need one more")

	d = s.await(t, next, ended)
	requireSuccess(t, d.Outcome, d)
	require.Equal(t, "1.1.0", d.Baseline)
	// Its process's times may be suspicious; then the pairs decide its metric, too.
	require.Contains(t, []string{"no suspicion", "no difference"}, s.verdicts(t, next)["ns/op"].verdict)
}

// checkVerifying waits until a request's workflow shows its first look.
func (s *stack) checkVerifying(t *testing.T, c client.Client, id bench.RequestID) {
	t.Helper()
	r, err := s.api.Request(t.Context(), string(id))
	require.NoError(t, err)
	s.check(t, c, expectation{
		workflow: protocol.RequestWorkflow, id: r.WorkflowID, state: string(protocol.RequestVerifying),
		details: []string{"look 1 of at most 5 at steady", "in turns with 1.0.0"}, attributes: requestAttributes,
	})
}

// lookPoints are the points at which processes are killed while a request is decided, in
// order.
var lookPoints = []string{failpoint.Suspecting, failpoint.Repeating, failpoint.Measuring, failpoint.Uploading, failpoint.Recording, failpoint.Judging}

// Killing a process while suspects are measured again changes no verdict: there is one for
// each row, and no pair is lost or counted twice. Each process is killed at another point of
// a look; BENCHLOOM_CHAOS=all ('make chaos') runs all 36 combinations.
func TestLongVerdictsSurviveKilledProcesses(t *testing.T) {
	t.Parallel()
	for i, victim := range victims {
		for j, point := range lookPoints {
			if os.Getenv("BENCHLOOM_CHAOS") != "all" && j != (i+4)%len(victims) { // the orchestrator while it judges
				continue
			}
			t.Run(victim+" at "+point, func(t *testing.T) {
				t.Parallel()
				killDuringLooks(t, victim, point)
			})
		}
	}
}

func killDuringLooks(t *testing.T, victim, point string) {
	t.Helper()
	s := startWhole(t)
	id, release := s.heldInLooks(t, point)
	s.kill(t, s.victim(t, victim, point))
	release()
	if victim == "up" {
		s.start(t)
	}
	s.requireOneVerdict(t, id)
}

// heldInLooks submits a release that is 10 % slower than the one before, and holds a process
// at a point while that is decided.
func (s *stack) heldInLooks(t *testing.T, point string) (id bench.RequestID, release func()) {
	t.Helper()
	steady := newSteadySuite(t)
	steady.artifact(t, "1.0.0", 100)
	steady.artifact(t, "1.1.0", 110)
	s.applyProject(t, "steady", steady.dir, bench.ProjectConfig{Verify: bench.VerifySuspects})
	submit := func(tag string) bench.RequestID {
		return s.submit(t, apiclient.NewRequest{Project: "steady", Type: bench.Release, Tag: tag}).ID
	}
	first := s.await(t, submit("1.0.0"), ended)
	requireSuccess(t, first.Outcome, first)
	suspecting := s.hold(t, failpoint.Suspecting)
	id = submit("1.1.0")
	s.reached(t, failpoint.Suspecting)
	if point == failpoint.Suspecting {
		return id, suspecting
	}
	release = s.hold(t, point)
	suspecting()
	s.reached(t, point)
	return id, release
}

// requireOneVerdict waits for the end of a request that is 10 % slower, and demands one
// comparison with one verdict per row, on whole looks.
func (s *stack) requireOneVerdict(t *testing.T, id bench.RequestID) {
	t.Helper()
	d := s.await(t, id, patience)
	requireSuccess(t, d.Outcome, d)
	rows := s.verdicts(t, id)
	require.Equal(t, "changed", rows["ns/op"].verdict, "%+v", rows)
	require.Equal(t, []int{34, 4}, []int{rows["ns/op"].pairs, rows["ns/op"].sessions}, "a young series needs four looks")
	for metric, row := range rows {
		require.NotEmpty(t, row.verdict, metric)
	}
	var comparisons, doubled int
	require.NoError(t, s.database(t).QueryRow(t.Context(), `
		select (select count(*) from comparison where request_id = $1), (select count(*) from (
			select from comparison_look l join comparison c on c.id = l.comparison_id and c.request_id = $1
			join job_run n on n.job_id = l.job_id join test_result r on r.run_id = n.id
			group by l.look, r.test_case_id, r.artifact_id having count(*) > 1) twice)`, string(id)).Scan(&comparisons, &doubled))
	require.Equal(t, []int{1, 0}, []int{comparisons, doubled})
}

// A request that is being decided is reset to its first, a middle and its last workflow
// task, and its workflow is terminated: its looks go on where they were.
func TestLooksSurviveResetAndTermination(t *testing.T) {
	t.Parallel()
	for _, point := range []string{failpoint.Suspecting, failpoint.Measuring, failpoint.Judging} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := startStack(t)
			id, release := s.heldInLooks(t, point)
			c := s.temporal(t)
			workflowID, verifying := s.requestWorkflow(t, id), string(protocol.RequestVerifying)
			s.awaitPhase(t, c, workflowID, verifying)
			for _, part := range []int{0, 1, 2} {
				run, events := decisions(t, c, workflowID)
				reset(t, c, workflowID, run, events[part*(len(events)-1)/2])
				s.awaitPhase(t, c, workflowID, verifying)
			}
			require.NoError(t, c.TerminateWorkflow(t.Context(), workflowID, "", "a test"))
			s.ripen(t)
			triggerReconcile(t, c)
			s.awaitPhase(t, c, workflowID, verifying)
			release()
			s.requireOneVerdict(t, id)
		})
	}
}
