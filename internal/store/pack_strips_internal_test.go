package store

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/packed"
)

// storedHistory stands for the stored parts of one history.
type storedHistory []packed.Strip

// partsOf returns what [stripsOf] reads for some artifacts.
func (h storedHistory) partsOf(artifacts []int64) (parts []storedStrip) {
	wanted := make(map[int]bool)
	for _, a := range artifacts {
		at := 0
		for i := range h {
			if h[i][0].Artifact <= a {
				at = i
			}
		}
		if at >= len(h) {
			continue
		}
		wanted[at] = true
		if n := len(h[at]); n < fullest && n+len(artifacts) >= fullest {
			for _, near := range []int{at - 1, at + 1} {
				if near >= 0 && near < len(h) && len(h[near]) >= fullest && len(h[near]) <= longestPart-fullest {
					wanted[near] = true
				}
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(wanted)) {
		one := storedStrip{first: h[i][0].Artifact, last: h[i][len(h[i])-1].Artifact, points: h[i], packed: []byte{1}}
		if i+1 < len(h) && len(h[i])+len(artifacts) >= fullest {
			one.next = h[i+1][0].Artifact
		}
		parts = append(parts, one)
	}
	return parts
}

// change applies changes, and returns the number of points that were written.
func (h *storedHistory) change(points map[int64]*packed.Point) (written int) {
	byFirst := make(map[int64]packed.Strip)
	for _, part := range *h {
		byFirst[part[0].Artifact] = part
	}
	for _, change := range changeParts(fullest, h.partsOf(slices.Collect(maps.Keys(points))), points) {
		if change.before.packed != nil {
			delete(byFirst, change.before.first)
		}
		for _, part := range change.after {
			byFirst[part[0].Artifact] = part
			written += len(part)
		}
	}
	*h = nil
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		*h = append(*h, byFirst[first])
	}
	return written
}

// check compares the parts with the points that they should have.
func (h storedHistory) check(t *testing.T, want map[int64]*packed.Point) {
	t.Helper()
	last := int64(0)
	n := 0
	for _, part := range h {
		require.NotEmpty(t, part)
		require.LessOrEqual(t, len(part), longestPart)
		for _, p := range part {
			require.Greater(t, p.Artifact, last, "parts are in order, and do not overlap")
			last = p.Artifact
			require.Equal(t, *want[p.Artifact], p)
			n++
		}
	}
	require.Len(t, want, n)
}

func somePoint(random *rand.Rand, artifact int64) *packed.Point {
	return &packed.Point{Artifact: artifact, N: 1 + random.IntN(9)}
}

// One artifact after another, upwards or downwards, leaves few parts, and writes each point
// about as often as a part has points.
func TestPartsOfAGrowingHistory(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 1)) //nolint:gosec // not for secrets
	for _, step := range []int64{1, -1} {
		for _, atOnce := range []int{1, 16} {
			var h storedHistory
			all, at, written := make(map[int64]*packed.Point), int64(1<<20), 0
			const artifacts = 5000
			for len(all) < artifacts {
				some := make(map[int64]*packed.Point)
				for range atOnce {
					at += step
					some[at] = somePoint(random, at)
				}
				maps.Copy(all, some)
				written += h.change(some)
				h.check(t, all)
				require.LessOrEqual(t, len(h), len(all)/longestPart+3)
			}
			require.Less(t, written, len(all)*(fullest/2/atOnce+5))
		}
	}
}

// Whatever is added, replaced and removed, wherever: the parts hold what is there.
func TestPartsOfAnyHistory(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 2)) //nolint:gosec // not for secrets
	for range 20 {
		var h storedHistory
		all := make(map[int64]*packed.Point)
		newest, far := int64(0), 1+random.Int64N(3)
		for range 400 {
			some := make(map[int64]*packed.Point)
			for range 1 + random.IntN(16) {
				at := 1 + random.Int64N(newest+1)
				if random.IntN(3) > 0 {
					newest += far
					at = newest
				}
				if some[at] = somePoint(random, at); random.IntN(8) == 0 {
					some[at] = nil
				}
			}
			for at, p := range some {
				if all[at] = p; p == nil {
					delete(all, at)
				}
			}
			h.change(some)
			h.check(t, all)
		}
	}
}
