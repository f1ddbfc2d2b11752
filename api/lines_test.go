package api_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// The lines of a benchmark's output are series of their own wherever results are shown.
func TestLinesAreComparedAndExportedByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	collector := b.register(t, "c1")
	for tag, slower := range map[string]float64{"1.25.0": 1, "1.26.0": 2} {
		j := b.submit(t, tag)
		plan := b.start(t, j, collector, 1)
		measured := block(j.cases, 1)
		for _, r := range measured.Results {
			for i := range r.Collections {
				noise := 1 + float64(i)/1000
				r.Collections[i].Values = map[bench.Metric]float64{
					bench.WallTime: noise, "Parse/small ns/op": 5 * noise * slower, "Parse/large ns/op": 70 * noise, "Parse/large MB/s": 9 / noise,
				}
			}
		}
		_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, measured)
		require.NoError(t, err)
		require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}))
		_, err = b.store.FinishJob(t.Context(), j.key, 0, "")
		require.NoError(t, err)
		require.NoError(t, b.store.CompleteRequest(t.Context(), j.request.ID, bench.Success, "", nil, "done"))
	}

	query := apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0", Scenarios: []string{"full"}, Metrics: []bench.Metric{"ns/op"}}
	c, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	changes := make(map[string]float64)
	for _, r := range c.Result.Rows {
		require.Equal(t, "ns/op", r.Metric)
		require.Equal(t, "gin", r.Benchmark)
		changes[r.Line] = r.Change.Value
	}
	require.InDeltaMapValues(t, map[string]float64{"Parse/small": 1, "Parse/large": 0}, changes, 1e-9)
	query.Metrics = []bench.Metric{"Parse/small ns/op"}
	c, err = b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, c.Result.Rows, 1)
	text, err := b.nobody.CompareText(t.Context(), query, apiclient.FormatText)
	require.NoError(t, err)
	require.Contains(t, text, "gin Parse/small ")

	var out bytes.Buffer
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "benchfmt", "1.25.0"))
	reader := benchfmt.NewReader(&out, "export")
	units := make(map[string][]string)
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			if name := r.Name.String(); strings.Contains(name, "scenario=full") && len(units[name]) == 0 {
				require.Equal(t, "1.25.0", r.GetConfig("tag"))
				for _, v := range r.Values {
					units[name] = append(units[name], v.Unit)
				}
			}
		case *benchfmt.SyntaxError:
			require.NoError(t, r)
		}
	}
	require.Equal(t, map[string][]string{
		"Gin/profile=build/scenario=full/backend=gc":             {"wall-time-sec"},
		"Gin/profile=build/scenario=full/backend=gc/Parse/small": {"sec/op"},
		"Gin/profile=build/scenario=full/backend=gc/Parse/large": {"B/s", "sec/op"},
	}, units)
	require.Equal(t, 1, reader.Units().GetBetter("MB/s"))
}
