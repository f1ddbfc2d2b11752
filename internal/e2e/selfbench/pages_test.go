package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestQuantilesOfAHistogram(t *testing.T) {
	t.Parallel()
	h := histogram{0.05: 90, 0.1: 99, 0.25: 100, math.Inf(1): 100}
	require.InDelta(t, 0.05, h.quantile(0.9), 1e-9)
	require.InDelta(t, 0.1, h.quantile(0.99), 1e-9)
	require.InDelta(t, 0.075, h.quantile(0.945), 1e-9)
	require.InDelta(t, 0.25, h.quantile(1), 1e-9)
	require.True(t, math.IsInf(histogram{0.05: 0, math.Inf(1): 3}.quantile(0.5), 1))
	require.Zero(t, histogram{}.quantile(0.99))
	require.Equal(t, histogram{0.05: 60, 0.1: 60, 0.25: 60, math.Inf(1): 60}, h.since(histogram{0.05: 30, 0.1: 39, 0.25: 40, math.Inf(1): 40}))
}

func TestEachRequestsAddressIsVisitedOnce(t *testing.T) {
	t.Parallel()
	var requests []bench.RequestID
	for n := range 1 + waitingBeside + endedBeside {
		requests = append(requests, bench.RequestID(rune('a'+n)))
	}
	v := addressesOf(requests, "largest", []string{"p"})
	seen, largest, queues := make(map[string]bool), 0, make(map[string]bool)
	for n := range 1200 {
		of, path := v.at(n)
		if of == ofQueue {
			queues[path] = true
			continue
		}
		require.False(t, seen[path], path)
		seen[path] = true
		if strings.HasPrefix(path, "/requests/largest") {
			largest++
		}
	}
	require.Len(t, seen, 900)
	require.Len(t, queues, 53)
	require.Equal(t, ofTheLargest, largest)
}

func TestTheStateThatAPageShows(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"It waits for its turn: behind 1.0.":                       "waiting",
		"It is in progress; its jobs are being written.":           "admitted",
		"It is in progress, but none of its jobs runs: of 1 job":   "expanded",
		"It is in progress: of 1 job, 1 running and 0 done.":       "running",
		"Its jobs are done; what they brought is being compared.":  "completing",
		"It has ended: cancelled: it waits for nobody any longer.": "completed",
	} {
		i, err := shownState(`<p class="sentence"><span>x</span>` + "\n <bdi>" + sentence + `</bdi></p><p>It has ended</p>`)
		require.NoError(t, err)
		require.Equal(t, want, statesOfRequest[i].name)
	}
	_, err := shownState("<p>nothing</p>")
	require.Error(t, err)
}
