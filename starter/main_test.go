package starter_test

import (
	"testing"

	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"
)

const workerName = "benchloom v1, workflows 3"

func TestMain(m *testing.M) {
	worker.SetBinaryChecksum(workerName) // of all workers of the process
	goleak.VerifyTestMain(m)
}
