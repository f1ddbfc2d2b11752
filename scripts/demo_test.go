package scripts_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/cli"
)

// export is a CSV export of results; see 'benchloom results export'.
type export [][]string

func newExport() export {
	return export{{"tag", "benchmark", "profile", "scenario", "backend", "iteration", "collected_at", "metric", "value", "disturbed", "segment", "in_turns"}}
}

// add adds iterations of a benchmark, of two metrics each.
func (e export) add(tag, benchmark, disturbed, inTurns string, iterations ...int) export {
	for _, i := range iterations {
		for _, metric := range []string{"cpu-time", "wall-time"} {
			at := inTurns + " at " + strconv.Itoa(i)
			e = append(e, []string{tag, benchmark, "build", "full", "gc", strconv.Itoa(i), at, metric, "1", disturbed, "6.1|mitigations=auto,nosmt|", inTurns})
		}
	}
	return e
}

func (e export) file(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, csv.NewWriter(&text).WriteAll(e))
	path := filepath.Join(t.TempDir(), "export.csv")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

// Three releases make two comparisons. With their own iterations, which take about five minutes, the demo must end within 15.
func TestTheDemoIsBoundedInTime(t *testing.T) {
	t.Parallel()
	const file = "../deploy/demo/go.yaml"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	project, err := cli.ReadProjectFile(file, text)
	require.NoError(t, err)
	require.NoError(t, project.Check())
	require.LessOrEqual(t, 2*project.VerifyTime(5*time.Minute), 10*time.Minute)
	require.DirExists(t, project.Suite)
}

func TestTheDemoChecksItsRecord(t *testing.T) {
	t.Parallel()
	const foreign, pressure = "foreign CPU time: 68 % of the job's CPUs", "CPU pressure: 12 %, of 1 %; foreign CPU time: 9 %"
	complete := func() export {
		return newExport().add("1.0", "gin", "", "", 1, 2, 3).add("1.0", "sort", "", "", 1, 2, 3).
			add("1.1", "gin", "", "", 1, 2, 3).add("1.1", "sort", "", "", 1, 2, 3)
	}
	for name, c := range map[string]struct {
		own, inTurns export
		says         string
		fails        bool
	}{
		"nothing was disturbed": {
			own: complete(), says: "1.0: 2 test cases, 3 iterations each; none disturbed\n1.1: 2 test cases, 3 iterations each; none disturbed\n",
		},
		"some were disturbed": {
			own: newExport().add("1.0", "gin", foreign, "", 1, 2).add("1.0", "gin", pressure, "", 3).add("1.1", "gin", "", "", 1, 2, 3),
			says: "1.0: 1 test case, 3 iterations each; 3 of 3 disturbed, most often by foreign CPU time\n" +
				"1.1: 1 test case, 3 iterations each; none disturbed\n",
		},
		"what was measured in turns counts by pairs, apart": {
			own: complete(),
			inTurns: newExport().add("1.0", "gin", foreign, "1.0 1.1", 1, 2, 3, 4).add("1.1", "gin", foreign, "1.0 1.1", 1, 2, 3, 4).
				add("1.1", "sort", "", "1.0 1.1", 5, 6),
			says: "1.1 in turns with 1.0: 6 pairs of 2 test cases; 4 of 6 disturbed, most often by foreign CPU time\n",
		},
		"an iteration is missing": {
			own: newExport().add("1.0", "gin", "", "", 1, 2, 3).add("1.1", "gin", "", "", 1, 3), fails: true,
			says: "2 instead of 3 collections: 1.1 gin build full gc\n",
		},
		"a test case is missing": {
			own: newExport().add("1.0", "gin", "", "", 1, 2, 3).add("1.0", "sort", "", "", 1, 2, 3).add("1.1", "gin", "", "", 1, 2, 3), fails: true,
			says: "0 instead of 3 collections: 1.1 sort build full gc\n",
		},
		"an iteration is recorded twice": {
			own: complete().add("1.1", "gin", "", "", 3), fails: true, says: "recorded twice: 1.1,gin build full gc,3 cpu-time\n",
		},
		"an artifact has no results": {
			own: newExport().add("1.0", "gin", "", "", 1, 2, 3), fails: true, says: "0 instead of 3 collections: 1.1 gin build full gc\n",
		},
		"there are no results": {own: newExport(), fails: true, says: "1.0: 0 test cases, 3 iterations each; none disturbed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.inTurns == nil {
				c.inTurns = newExport()
			}
			said, failed := run(t, ".", nil, "demo-record", "3", c.own.file(t), c.inTurns.file(t), "1.0", "1.1")
			require.Contains(t, said, c.says)
			require.Equal(t, c.fails, failed, said)
		})
	}
}
