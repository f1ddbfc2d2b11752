package e2e_test

import (
	"os"
	"testing"
)

// Benchmarks of most tests here wait for files of the test, which isolated ones do not see. Those of isolation switch it on.
func TestMain(m *testing.M) {
	if os.Getenv("BENCHLOOM_ISOLATION") == "" {
		if err := os.Setenv("BENCHLOOM_ISOLATION", "off"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
