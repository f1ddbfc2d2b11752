//go:build unix

package jobrun_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// diary is a watcher that writes down what it is told.
type diary struct {
	lines []string
	// took has the durations of phases by name.
	took map[string][]time.Duration
}

func (d *diary) Begin(m jobrun.Measured) {
	d.lines = append(d.lines, fmt.Sprintf("begin %s %s %d/%d", m.TestCase.Benchmark, m.Subject, m.Iteration, m.Warmup))
}

func (d *diary) End() { d.lines = append(d.lines, "end") }

func (d *diary) Timed(phase jobrun.Phase, own string, begin, end time.Time) {
	name := strings.TrimSuffix(string(phase)+"/"+own, "/")
	if d.took == nil {
		d.took = map[string][]time.Duration{}
	}
	d.took[name] = append(d.took[name], end.Sub(begin))
	d.lines = append(d.lines, name)
}

func watched(t *testing.T) (*bundle, *diary) {
	t.Helper()
	b, d := newBundle(t), &diary{}
	b.machine.Watcher = d
	return b, d
}

// shell is a suite whose measured command is a script.
func shell(script string) shellSuite {
	return shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, script), Iterations: 1}, nil
	}}
}

func TestAWatcherAccompaniesAJob(t *testing.T) {
	t.Parallel()
	b, d := watched(t)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, "true"), Warmups: 1, Iterations: 2}, nil
	}}
	job := b.job(t, s, "gin/full")
	job.Subjects = append(job.Subjects, b.artifact(t, "B"))
	require.NoError(t, b.run(t, job))

	want := []string{"preparing", "preparing"}
	for _, measured := range []string{"A 0/1", "B 0/1", "B 1/0", "A 1/0", "A 2/0", "B 2/0"} {
		want = append(want, "setting up", "begin gin "+measured, "end", "measuring")
	}
	require.Equal(t, want, d.lines)
}

func TestAWatcherSeesEachAttemptAtAnIteration(t *testing.T) {
	t.Parallel()
	b, d := watched(t)
	attempts := 0
	b.sandbox.change = func(_ measure.Command, s *measure.Sample) {
		if attempts++; attempts == 1 {
			s.Invalid = []measure.InvalidCounter{{Counter: "instructions:u"}}
		}
	}
	require.NoError(t, b.run(t, b.job(t, shell("true"), "gin/full")))
	require.Equal(t, 2, strings.Count(strings.Join(d.lines, "\n"), "begin gin A 1/0"))
}

func TestACommandMarksItsOwnPhases(t *testing.T) {
	t.Parallel()
	b, d := watched(t)
	script := `{ echo begin link $(date +%s.%N); sleep 0.02; echo end link $(date +%s.%N)
		echo phase parse 0.005; echo nonsense; echo begin open $(date +%s.%N); } >` + filepath.Join(b.sandbox.TempDir(), jobrun.PhasesFile)
	require.NoError(t, b.run(t, b.job(t, shell(script), "gin/full")))

	require.Equal(t, []string{"preparing", "setting up", "begin gin A 1/0", "end", "measuring", "measuring/link", "measuring/parse", "measuring/open"}, d.lines)
	require.GreaterOrEqual(t, d.took["measuring/link"][0], 20*time.Millisecond)
	require.Less(t, d.took["measuring/link"][0], d.took["measuring"][0]+time.Second)
	require.Equal(t, 5*time.Millisecond, d.took["measuring/parse"][0])
	require.Contains(t, b.log.String(), "== phases: 1 of 5 lines are ignored; line 4: write begin NAME TIME")
}

// What a step before the command has left in the file belongs to nobody.
func TestPhasesOfEarlierCommandsAreForgotten(t *testing.T) {
	t.Parallel()
	b, d := watched(t)
	file := filepath.Join(b.sandbox.TempDir(), jobrun.PhasesFile)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Before: []suite.Step{workStep(p, "echo phase early 0 >"+file)}, Measure: sh(p, "true"), Iterations: 1}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.NotContains(t, d.took, "measuring/early")
}

// Commands own the directory of the file: whatever they make of it, the job goes on, and nothing else is read.
func TestAFileOfPhasesThatIsNone(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a named pipe":           "mkfifo %s",
		"a directory":            "mkdir -p %s/below",
		"a link that leads out":  "ln -s /etc/passwd %s",
		"a link to a device":     "ln -s /dev/zero %s",
		"one that nobody closed": "echo begin endless >%s; exec 9>>%[1]s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, d := watched(t)
			require.NoError(t, b.run(t, b.job(t, shell(fmt.Sprintf(script, filepath.Join(b.sandbox.TempDir(), jobrun.PhasesFile))), "gin/full")))
			require.Len(t, b.sink.results()["gin/full A"].Collections, 1)
			require.Len(t, d.took, 3, "no phase of its own: %v", d.lines)
			require.Contains(t, b.log.String(), "== phases: ")
		})
	}
}

func TestTenMillionLinesOfPhases(t *testing.T) {
	t.Parallel()
	b, d := watched(t)
	script := fmt.Sprintf("yes phase many 0.000001 | head -n 10000000 >%s", filepath.Join(b.sandbox.TempDir(), jobrun.PhasesFile))
	require.NoError(t, b.run(t, b.job(t, shell(script), "gin/full")))
	require.Len(t, d.took["measuring/many"], 1000)
	require.Contains(t, b.log.String(), "== phases: what follows the first 1000 is left out")
}
