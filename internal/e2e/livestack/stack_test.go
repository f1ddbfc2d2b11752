package livestack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingProgramSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Programs{Benchloom: t.TempDir() + "/benchloom", Temporal: t.TempDir() + "/temporal-dev"})
	require.ErrorContains(t, err, "make build")
}
