package paired

import (
	"cmp"
	"math"
	"slices"
)

// exactLimit is the number of differences up to which distributions are computed exactly. Beyond it the normal
// approximation errs by less than 1e-4.
const exactLimit = 300

// resolution is the distance below which two magnitudes are tied: far above the rounding errors of logarithms, far below
// what any instrument tells apart.
const resolution = 1e-12

// P returns the two-sided p value of the signed-rank test that the differences are symmetric around 0: twice the smaller
// tail, at most 1, and 1 for no differences. The differences must be finite.
//
// The distribution is the conditional one: given the magnitudes, each sign is as likely as the other. Tied magnitudes
// share their mean rank. Zeros are ranked like other magnitudes and then count for neither side (Pratt's treatment), which
// agrees with counting Walsh averages on both sides of 0. The level is kept exactly for any ties and zeros; the smallest
// possible p is 2/2^k for k differences other than 0.
//
// Sources: F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1 (1945); J. W. Pratt, Remarks on
// zeros and ties in the Wilcoxon signed rank procedures, J. Amer. Statist. Assoc. 54 (1959).
func P(differences []float64) float64 {
	ranks, positive, negative := signedRanks(differences)
	smaller := min(positive, negative)
	if len(differences) > exactLimit {
		return normalP(ranks, smaller)
	}
	return min(1, 2*tailOf(ranks, smaller)[smaller])
}

// Smallest returns the smallest p value that n differences can reach: 2/2^n.
func Smallest(n int) float64 { return min(1, math.Ldexp(2, -n)) }

// signedRanks returns the doubled mid-ranks of the differences other than 0, and their sums by sign.
func signedRanks(differences []float64) (ranks []int, positive, negative int) {
	order := slices.Clone(differences)
	slices.SortFunc(order, func(x, y float64) int { return cmp.Compare(math.Abs(x), math.Abs(y)) })
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && math.Abs(order[j])-math.Abs(order[j-1]) <= resolution {
			j++
		}
		if i > 0 || math.Abs(order[0]) > resolution {
			rank := i + j + 1
			for _, d := range order[i:j] {
				ranks = append(ranks, rank)
				if d > 0 {
					positive += rank
				} else {
					negative += rank
				}
			}
		}
		i = j
	}
	return ranks, positive, negative
}

// tailOf returns P(sum <= s) for s = 0 ... limit, of the sum over a random half of the ranks: each is in with probability
// 1/2. Up to 52 ranks the result is exact.
func tailOf(ranks []int, limit int) []float64 {
	tail := make([]float64, limit+1)
	tail[0] = 1
	reached := 0 // the largest sum so far
	for _, rank := range ranks {
		reached = min(reached+rank, limit)
		for s := reached; s >= rank; s-- {
			tail[s] = (tail[s] + tail[s-rank]) / 2
		}
		for s := min(rank-1, reached); s >= 0; s-- {
			tail[s] /= 2
		}
	}
	total := 0.0
	for s, p := range tail {
		total += p
		tail[s] = total
	}
	return tail
}

// normalP approximates the two-sided p value of a sum of doubled ranks, with correction for continuity.
func normalP(ranks []int, smaller int) float64 {
	mean, variance := 0.0, 0.0
	for _, rank := range ranks {
		mean += float64(rank) / 2
		variance += float64(rank) * float64(rank) / 4
	}
	if variance == 0 {
		return 1
	}
	return math.Erfc(max(0, mean-float64(smaller)-1) / math.Sqrt(2*variance))
}
