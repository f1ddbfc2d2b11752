package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/internal/machinegate"
)

// ofPermit tells of a permit as the SDK does.
type ofPermit struct {
	worker.SlotReleaseInfo
	permit *worker.SlotPermit
}

func (o ofPermit) Permit() *worker.SlotPermit { return o.permit }

// The server hears of a job's end while the machine takes the next one.
func TestAMachineTakesTheNextJobBeforeTheServerHasHeardOfTheLast(t *testing.T) {
	t.Parallel()
	gate, err := ownMachine("one")
	require.NoError(t, err)
	gate.serve("one", []string{"queue"})
	p := gate.newPoll(machinegate.Lane{Slot: "one", Queue: "queue"})
	reserve := func() *worker.SlotPermit {
		t.Helper()
		permit, again, _ := p.tryOpen()
		require.Zero(t, again)
		return permit
	}
	var last *worker.SlotPermit
	for range 3 {
		permit := reserve()
		require.NotNil(t, permit)
		require.Nil(t, reserve(), "it polls once")
		p.MarkSlotUsed(ofPermit{permit: permit})
		end, ok := p.admit()
		require.True(t, ok)
		if last != nil {
			p.ReleaseSlot(ofPermit{permit: last}) // the server has heard of the job before
		}
		require.Nil(t, reserve(), "the machine is busy")
		end()
		last = permit
	}
	require.NotNil(t, reserve())
	p.ReleaseSlot(ofPermit{permit: last})
	require.Nil(t, reserve(), "it still polls")
	shut := make(chan struct{})
	go func() { defer close(shut); p.shut(t.Context()) }()
	select {
	case <-shut:
	case <-time.After(time.Minute):
		t.Fatal("nothing runs")
	}
}
