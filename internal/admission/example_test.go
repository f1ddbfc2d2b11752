package admission_test

import (
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

func ExampleOrder() {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	requests := []admission.Request{
		{ID: "r1", Tag: "c2", Type: bench.Master, ParentTag: "c1", Status: bench.ArtifactsReady, CreatedAt: noon},
		{ID: "r2", Tag: "c1", Type: bench.Master, ParentTag: "c0", Status: bench.ArtifactsReady, CreatedAt: noon.Add(time.Hour)},
		{ID: "r3", Tag: "v1.2.0", Type: bench.Release, Status: bench.ArtifactsReady, CreatedAt: noon, CommitDate: noon},
	}
	for _, p := range admission.Order(requests, map[string]bool{"c0": true}, admission.Spec) {
		fmt.Printf("%s: may start: %t, blocked: %q\n", p.Request.Tag, p.Admissible, p.Blocked)
	}
	// Output:
	// v1.2.0: may start: true, blocked: ""
	// c1: may start: true, blocked: ""
	// c2: may start: false, blocked: "parent c1 is not finished"
}

func ExampleCompareVersions() {
	fmt.Println(admission.CompareVersions("1.9.0", "1.10.0"), admission.CompareVersions("go1.25", "go1.25rc2"))
	// Output: -1 1
}

func ExampleDecodeState() {
	_, _, err := admission.DecodeState([]byte(`{"requests": [{"tag": "c1", "type": "nightly", "created_at": "2026-01-31T12:00:00Z", "status": "in_progress"}]}`))
	fmt.Println(err)
	// Output: reading the state file: requests[0].type: "nightly" is unknown; use release, master or try
}
