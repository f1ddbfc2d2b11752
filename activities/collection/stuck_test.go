package collection_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/protocol"
)

// unkillable is a sandbox in which processes of the first job survive being killed.
type unkillable struct{ jobrun.Sandbox }

func (unkillable) Stuck() error {
	return fmt.Errorf("killing what command \"x\" left behind: %w: [4711]", measure.ErrNotKilled)
}

// It would fail one job after the other, while others of its pool could run them.
func TestACollectorWhoseSlotIsStuckTakesNoJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Machine.Sandbox = unkillable{b.Machine.Sandbox}
	require.Empty(t, b.Stuck())
	_, err := b.run(b.job("v1", "one"), 1)
	require.NoError(t, err, "what it has measured counts")
	require.Contains(t, b.Stuck(), `its slot can run nothing more: killing what command "x" left behind`)
	require.EqualValues(t, 1, b.unwanted.Load(), "the API is told at once")
	before := b.journal()
	_, err = b.run(b.job("v1", "two"), 1)
	b.fails(err, protocol.ErrTypeNotTaken, false, "processes of an earlier job cannot be killed")
	require.Equal(t, before, b.journal())
}
