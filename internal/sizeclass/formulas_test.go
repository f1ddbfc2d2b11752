package sizeclass_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// The specification's table: a job of 60 s on class 8.
func TestAcceptableTimesOfTheSpecification(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class             bench.SizeClass
		low, middle, high float64
	}{
		{class: 1, low: 112.0, middle: 169.7, high: 257.2},
		{class: 2, low: 90.9, middle: 120, high: 158.3},
		{class: 4, low: 73.9, middle: 84.9, high: 97.5},
		{class: 8, low: 60, middle: 60, high: 60},
	} {
		for exponent, want := range map[float64]float64{0.3: row.low, 0.5: row.middle, 0.7: row.high} {
			acceptable := sizeclass.AcceptableTime(time.Minute, sizeclass.Factor(8, row.class, exponent), time.Second)
			require.InDelta(t, want, acceptable.Seconds(), 0.06, "class %d, exponent %g", row.class, exponent)
			// It is the time at which the class is as good as the largest.
			require.InDelta(t, sizeclass.Objective(60, 8, exponent), sizeclass.Objective(acceptable.Seconds(), row.class, exponent), 1e-6)
		}
	}
}

func TestAcceptableTimeIsAtLeastTheMinimum(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10*time.Second, sizeclass.AcceptableTime(50*time.Millisecond, 2, 10*time.Second))
	require.Equal(t, 12*time.Second, sizeclass.AcceptableTime(6*time.Second, 2, 10*time.Second))
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	require.Equal(t, 15*time.Second, sizeclass.Timeout(10*time.Second, 1.5, time.Minute))
	require.Equal(t, time.Minute, sizeclass.Timeout(time.Hour, 1.5, time.Minute), "at most the job's own")
	require.Equal(t, time.Minute, sizeclass.Timeout(1<<62, 100, time.Minute), "whatever comes in")
}

func TestMedian(t *testing.T) {
	t.Parallel()
	require.Zero(t, sizeclass.Median(nil))
	require.EqualValues(t, 3, sizeclass.Median([]time.Duration{9, 1, 3}))
	require.EqualValues(t, 4, sizeclass.Median([]time.Duration{9, 1, 3, 5}))
}
