package noise

import (
	"math"
	"slices"
)

// Distances from the median to which values are drawn in before a standard deviation is taken, in robust standard deviations:
// 1.4826 median absolute deviations.
const (
	robust = 1.4826
	reach  = 3
	// Within sessions, the tails of values that are drawn in further tell nothing of how far sessions are off. The standard
	// deviation of normal values that are drawn in to 2 is 0.9595 of that without.
	reachWithin  = 2
	remainWithin = 0.9595
)

// Spread returns the standard deviation of values drawn in to 3 robust standard deviations around their median (winsorised),
// in the values' unit; 0 for fewer than two values. If more than half of the values are equal nothing is drawn in.
func Spread(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	ascending := slices.Clone(values)
	slices.Sort(ascending)
	center := middle(ascending)
	if limit := reach * robust * deviation(ascending, center); limit > 0 {
		for i, v := range ascending {
			ascending[i] = min(max(v, center-limit), center+limit)
		}
	}
	return math.Sqrt(squares(ascending) / float64(len(ascending)-1))
}

// deviation returns the median distance of ascending values from their median.
func deviation(ascending []float64, center float64) float64 {
	n := len(ascending)
	// The values closest to the center are neighbours: widen their range by the closer of the next ones.
	high, _ := slices.BinarySearch(ascending, center)
	low := high - 1
	lower, upper := 0.0, 0.0
	for i := range n/2 + 1 {
		lower = upper
		if high == n || low >= 0 && center-ascending[low] <= ascending[high]-center {
			upper = center - ascending[low]
			low--
		} else {
			upper = ascending[high] - center
			high++
		}
		if i == 0 {
			lower = upper
		}
	}
	if n%2 == 1 {
		return upper
	}
	return lower/2 + upper/2
}

// Within returns the standard deviation within groups, pooled, of values drawn in to 2 robust standard deviations around the
// median of their group, consistent for normal values; 0 if no group has two values.
func Within(groups [][]float64) float64 {
	var distances []float64 // from the median, without that of the median itself
	degrees := 0
	for _, group := range groups {
		if len(group) < 2 {
			continue
		}
		center, n := median(group), len(group)
		own := distancesFrom(center, group)
		slices.Sort(own)
		few := math.Sqrt(float64(n) / float64(n-1)) // the median of few values is near them
		for _, d := range own[n%2:] {
			distances = append(distances, few*d)
		}
		degrees += n - 1
	}
	if degrees == 0 {
		return 0
	}
	limit := reachWithin * robust * median(distances)
	sum := 0.0
	for _, group := range groups {
		if len(group) > 1 {
			sum += squares(drawnIn(group, median(group), limit))
		}
	}
	return math.Sqrt(sum/float64(degrees)) / remainWithin
}

// drawnIn returns the values, those further from the center than a limit moved to that distance. A limit of 0 is none.
func drawnIn(values []float64, center, limit float64) []float64 {
	drawn := slices.Clone(values)
	if limit > 0 {
		for i, v := range drawn {
			drawn[i] = min(max(v, center-limit), center+limit)
		}
	}
	return drawn
}

// withoutTails returns the values drawn in to 3 robust standard deviations around their median.
func withoutTails(values []float64) []float64 {
	ascending := slices.Clone(values)
	slices.Sort(ascending)
	center := middle(ascending)
	return drawnIn(values, center, reach*robust*deviation(ascending, center))
}

func distancesFrom(center float64, values []float64) []float64 {
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - center)
	}
	return distances
}

// median returns the middle value, or the mean of the two middle ones. There must be at least one.
func median(values []float64) float64 {
	ascending := slices.Clone(values)
	slices.Sort(ascending)
	return middle(ascending)
}

// middle returns the median of ascending values.
func middle(ascending []float64) float64 {
	n := len(ascending)
	return ascending[(n-1)/2]/2 + ascending[n/2]/2
}

// squares returns the sum of squared distances from the mean.
func squares(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	mean := average(values)
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

func average(values []float64) float64 {
	first, sum := values[0], 0.0
	for _, v := range values {
		sum += v - first // equal values have exactly that mean
	}
	return first + sum/float64(len(values))
}
