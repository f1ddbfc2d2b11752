package livestack

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/up"
)

func TestProgramsInheritTheCPUs(t *testing.T) {
	t.Parallel()
	cores, err := up.AvailableCores()
	require.NoError(t, err)
	var out []byte
	require.NoError(t, OnCPUs(cores[:1], func() (err error) {
		out, err = exec.CommandContext(t.Context(), "nproc").Output()
		return err
	}))
	require.Equal(t, "1", strings.TrimSpace(string(out)))
	again, err := up.AvailableCores()
	require.NoError(t, err)
	require.Equal(t, cores, again, "this program keeps its own")
	require.Error(t, OnCPUs(measure.CPUList{1023}, func() error { return nil }), "there is no such CPU")
}
