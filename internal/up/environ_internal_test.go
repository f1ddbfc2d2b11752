package up

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody who uses another Temporal has its address and key in the environment.
func TestProcessesOfTheEmbeddedTemporalKnowNoOther(t *testing.T) {
	t.Parallel()
	environ := []string{"PATH=/bin", "TEMPORAL_ADDRESS=other:7233", "TEMPORAL_API_KEY=key", "TEMPORAL_TLS=true", "DATABASE_URL=db", "GOMEMLIMIT=1GiB"}
	require.Equal(t, []string{"PATH=/bin"}, withoutService(environ, true))
	require.Equal(t, []string{"PATH=/bin", "TEMPORAL_API_KEY=key", "TEMPORAL_TLS=true"}, withoutService(environ, false))
}
