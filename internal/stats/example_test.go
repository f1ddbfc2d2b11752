package stats_test

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/stats"
)

func ExampleCompare() {
	series := []stats.Series{
		{
			Key: stats.Key{TestCase: stats.TestCase{Benchmark: "gin"}, Metric: "wall-time"}, Unit: "ns",
			A: []float64{1000, 1002, 999, 1001, 1003, 998}, B: []float64{900, 903, 899, 901, 902, 898},
		},
		{
			Key: stats.Key{TestCase: stats.TestCase{Benchmark: "hugo"}, Metric: "wall-time"}, Unit: "ns",
			A: []float64{1000, 1002, 999, 1001, 1003, 998}, B: []float64{1001, 999, 1002, 998, 1000, 1003},
		},
	}
	comparison, err := stats.Compare(series, stats.DefaultOptions())
	if err != nil {
		panic(err)
	}
	for _, r := range comparison.Results {
		fmt.Printf("%s: %s\n", r.Benchmark, r.Verdict)
	}
	// Output:
	// gin: improvement
	// hugo: no difference
}
