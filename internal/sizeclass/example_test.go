package sizeclass_test

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

func ExampleAnalyzer_Select() {
	analyzer, err := sizeclass.New(sizeclass.Defaults())
	if err != nil {
		panic(err)
	}
	selection, _, err := analyzer.Select(sizeclass.Statistics{}, sizeclass.Question{
		Classes: []bench.SizeClass{2, 4, 8}, Original: 30 * time.Minute, Now: time.Unix(0, 0), Random: 0.5, Attempt: "run-1",
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("class %d for at most %s\n", selection.Class, selection.Timeout)
	// Output: class 2 for at most 10s
}

func ExampleAcceptableTime() {
	factor := sizeclass.Factor(8, 2, 0.5) // how much longer a job may take on class 2 than on class 8
	fmt.Println(sizeclass.AcceptableTime(time.Minute, factor, 10*time.Second))
	// Output: 2m0s
}
