package collection_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(spoolChild); dir != "" {
		os.Exit(spoolOneBlock(dir))
	}
	goleak.VerifyTestMain(m)
}
