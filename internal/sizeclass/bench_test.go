package sizeclass_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/benchloom/benchloom/internal/sizeclass"
)

// A decision with full histories, and learning from its run.
func BenchmarkSelectAndLearn(b *testing.B) {
	a, err := sizeclass.New(sizeclass.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	var s sizeclass.Statistics
	for i := range 200 {
		s = a.Learn(s, sizeclass.Attempt{ID: strconv.Itoa(i), Class: classes[i%4], Outcome: sizeclass.Succeeded, Duration: time.Minute, At: now, Complete: true})
	}
	for i := 0; b.Loop(); i++ {
		selection, after, err := a.Select(s, question())
		if err != nil {
			b.Fatal(err)
		}
		s = a.Learn(after, sizeclass.Attempt{ID: "b" + strconv.Itoa(i), Class: selection.Class, Outcome: sizeclass.Succeeded, Duration: time.Minute, At: now, Complete: true})
	}
}
