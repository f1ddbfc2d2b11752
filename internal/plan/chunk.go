package plan

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// Block returns the test case without its scenario. A machine measures all its scenarios together:
// test cases with the same block stay in one chunk.
func Block(tc bench.TestCase) bench.TestCase {
	tc.Scenario = ""
	return tc
}

// blocks groups test cases that follow each other by their blocks.
func blocks(cases []bench.TestCase) [][]bench.TestCase {
	var out [][]bench.TestCase
	for i, tc := range cases {
		if i == 0 || Block(tc) != Block(cases[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], tc)
	}
	return out
}

// chunks divides each job into as many parts as c allows and the job has blocks. What a part
// measures is decided when a machine asks for it, see [ChunkSize]; until then each has its
// even share. All parts wait in one pool, and on the size class that was chosen for the whole:
// durations of parts say nothing about the shape.
func (f Facts) chunks(jobs []bench.PlannedJob, c graph.Chunks) []bench.PlannedJob {
	var out []bench.PlannedJob
	for _, j := range jobs {
		all := blocks(j.TestCases)
		n := min(c.Max, len(all))
		if n < 2 {
			out = append(out, j)
			continue
		}
		j.ChunkSet, j.ChunkOf, j.ChunkMin = j.Key, n, min(c.Min, n)
		j.Shape = ""
		for i := range n {
			j.Chunk = i + 1
			out = append(out, f.of(j, slices.Concat(all[i*len(all)/n:(i+1)*len(all)/n]...)))
		}
	}
	return out
}

// ChunkAsk describes the rest of a divided job when a machine asks for a part of it.
type ChunkAsk struct {
	// Seconds are the durations of the blocks that are left, in their order; 0: not known.
	Seconds []float64
	// Formed counts the parts that have begun; Min and Max bound all of them.
	Formed, Min, Max int
	// Idle counts the machines that could take a part now, the one that asks among them.
	Idle int
}

// ChunkSize returns the number of blocks, from the first on, of the part for the machine that
// asks: at least one. The idle machines share the blocks that are left, such that in total
// there are at least Min parts, if there are as many blocks, and at most Max. So a machine
// that is alone makes Min parts one after the other, and others that come meanwhile take
// their share. A block of unknown duration counts as the average one.
func ChunkSize(a ChunkAsk) int {
	left := len(a.Seconds)
	parts := max(1, min(max(a.Idle, a.Min-a.Formed), a.Max-a.Formed, left))
	seconds := estimated(a.Seconds)
	total := 0.0
	for _, s := range seconds {
		total += s
	}
	share, taken := total/float64(parts), 0.0
	for i, s := range seconds {
		switch {
		case parts == 1:
			return left
		case i > 0 && (taken+s/2 > share || left-i <= parts-1):
			return i
		}
		taken += s
	}
	return max(1, left)
}

// estimated fills in what is not known with the average of what is, or with 1 for all.
func estimated(seconds []float64) []float64 {
	known, sum := 0, 0.0
	for _, s := range seconds {
		if s > 0 {
			known, sum = known+1, sum+s
		}
	}
	average := 1.0
	if known > 0 {
		average = sum / float64(known)
	}
	out := slices.Clone(seconds)
	for i, s := range out {
		if s <= 0 {
			out[i] = average
		}
	}
	return out
}
