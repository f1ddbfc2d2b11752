package store_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(packingEnv); url != "" {
		os.Exit(packAll(url))
	}
	goleak.VerifyTestMain(m)
}
