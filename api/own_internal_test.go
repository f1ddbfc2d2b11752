package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// An operation for collectors that does not say whose work it concerns is not served at
// all: the API does not start.
func TestOperationsOfCollectorsDeclareWhoseWorkTheyConcern(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation operation
		in        any
		says      string // empty: it is declared well
	}{
		"a run":                         {operation{need: toCollect, path: "/runs/{run}/finish", owns: []ownership{ownRun}}, &finishRun{}, ""},
		"a run and a body":              {operation{need: toCollect, path: "/runs/{run}/start", owns: []ownership{ownRun, ownBody}}, &startRun{}, ""},
		"for readers":                   {operation{need: toRead, path: "/runs/{run}/log"}, &none{}, ""},
		"nothing":                       {operation{need: toCollect, path: "/runs/{run}/finish"}, &finishRun{}, "does not declare whose work it concerns"},
		"a parameter that is not there": {operation{need: toCollect, path: "/collectors/register", owns: []ownership{ownName}}, &registerCollector{}, "its path has no parameter collector"},
		"a body that names nothing":     {operation{need: toCollect, path: "/runs/{run}/finish", owns: []ownership{ownBody}}, &finishRun{}, "its body is declared to name work, and does not"},
	} {
		err := c.operation.declared(c.in)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestBodiesNameTheirWork(t *testing.T) {
	t.Parallel()
	require.Equal(t, work{collector: "c1"}, (&registerCollector{Body: apiclient.Registration{Name: "c1"}}).work())
	require.Equal(t, work{collector: "c1"}, (&startRun{Body: apiclient.RunStart{Collector: "c1"}}).work())
	require.Equal(t, work{run: "r1"}, (&heartbeat{Body: apiclient.Heartbeat{Run: "r1"}}).work())
}
