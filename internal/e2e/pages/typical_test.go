package pages

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// typicalWorld is a service as people find it: releases with a verdict and with a failure,
// one in progress behind which others wait, commands, and a paused project.
func typicalWorld(t *testing.T, s service) world {
	t.Helper()
	s.gateway(t, "gateway", bench.ProjectConfig{Description: "A web gateway, release by release."})
	s.gateway(t, "plugins", bench.ProjectConfig{Description: "What others add to the gateway."})
	ended := func(id bench.RequestID) apiclient.RequestDetail {
		return s.until(t, id, func(d apiclient.RequestDetail) bool { return d.Status == bench.Completed })
	}
	sampled := ended(s.small(t, "sh", "-c", packing).ID)
	ended(s.batch(t, "index", 0, 4, "sh", "-c", "seq 1 200000 | sort -r | tail -n 1"))
	for _, r := range gatewayReleases[:releasedWell] {
		done := ended(s.release(t, "gateway", r.tag))
		require.Equal(t, bench.Success, done.Outcome, "%s: %s", r.tag, done.Message)
	}
	before, after := s.profiledRow(t, "gateway")
	failed := ended(s.release(t, "gateway", "1.3.0"))
	require.NotEmpty(t, failed.Runs)
	require.NotEmpty(t, failed.Errors)

	running := s.release(t, "gateway", "1.4.0")
	runs := func(d apiclient.RequestDetail) bool { return d.Progress.JobsRunning > 0 }
	s.until(t, running, runs)
	s.release(t, "gateway", "1.5.0")
	for _, pr := range []int{41, 43} {
		s.try(t, "gateway", pr)
	}
	nightly := s.until(t, s.batch(t, "nightly", 1, 6, "sleep", "900"), runs)
	waiting := nightly.Jobs[len(nightly.Jobs)-1]

	wrong := s.command(t, "sleep", "901")
	_, err := s.API.CancelRequest(t.Context(), string(wrong.ID), apiclient.Act{Reason: "the wrong command"})
	require.NoError(t, err)
	_, err = s.API.PauseQueue(t.Context(), "plugins", apiclient.Act{Reason: "its machine is being moved"})
	require.NoError(t, err)
	s.release(t, "plugins", "2.0.0")

	shapes, err := s.API.Shapes(t.Context(), "")
	require.NoError(t, err)
	require.NotEmpty(t, shapes.Shapes)
	learned := slices.MaxFunc(shapes.Shapes, func(a, b apiclient.Shape) int { return a.Runs - b.Runs })
	const compared = "/projects/gateway/compare?a=1.1.0&b=1.2.0"
	return world{s, map[string]string{
		"overview": "/", "project": "/projects/gateway", "order": "/projects/gateway/queue", "queues": "/queues", "waits": "/stats/wait",
		"compare": compared, "compare-rows": compared + "&metric=ns%2Fop&show=all&cols=spread#rows", "compare-row": compared + "&open=" + s.row(t, "gateway", "render") + "#row",
		"compare-machine": "/projects/gateway/compare/machine?a=1.1.0&b=1.2.0&row=" + s.row(t, "gateway", "render"),
		"profiles":        "/projects/gateway/profiles", "profile": "/profiles/" + string(after), "profile-diff": "/profiles/diff?a=" + string(before) + "&b=" + string(after),
		"history": "/projects/gateway/history?metric=ns%2Fop", "history-facets": "/projects/gateway/history?metric=ns%2Fop&q=category%3Aprimary#facets",
		"history-values": "/projects/gateway/history?metric=ns%2Fop&open=render&pin=1.0.0&band=minmax#values",
		"request":        "/requests/gateway:1.2.0", "request-failed": "/requests/gateway:1.3.0", "request-running": "/requests/" + string(nightly.ID),
		"graph": "/graphs/gateway:1.2.0", "again": "/requests/gateway:1.2.0/again", "retrigger": "/graphs/gateway:1.2.0/retrigger?kind=benchmark&downstream=none", "collectors": "/collectors", "collector": "/collectors/local-1",
		"sizeclasses": "/sizeclasses", "sizeclass": "/sizeclasses/" + learned.Shape,
		"job": "/jobs/" + string(waiting.Key), "run": "/runs/" + string(failed.Errors[0].Run), "run-machine": "/runs/" + string(sampled.Runs[0].ID) + "#profile",
		"audit": "/audit", "help": "/help", "sign-in": "/sign-in",
	}}
}

// profiledRow makes profiles of a benchmark of 1.1.0 and 1.2.0.
func (s service) profiledRow(t *testing.T, project string) (before, after bench.ProfileID) {
	t.Helper()
	r := s.submit(t, apiclient.NewRequest{
		Project: project, Type: bench.AdHoc, Tag: "1.2.0", Versus: "1.1.0", Profiler: "stacks", Selection: bench.Selection{Benchmarks: []string{"render"}},
	})
	s.until(t, r, func(d apiclient.RequestDetail) bool { return d.Status == bench.Completed })
	made, err := s.API.CodeProfiles(t.Context(), project, apiclient.CodeProfileQuery{Request: r})
	require.NoError(t, err)
	require.Len(t, made, 2)
	for _, p := range made {
		if p.Tag == "1.1.0" {
			before = p.ID
		} else {
			after = p.ID
		}
	}
	return before, after
}

// packing uses CPU, memory and disks for ten seconds, and marks its parts.
const packing = `mark() { echo "$1 $2 $(date +%s.%N)" >>"$TMPDIR/benchloom-phases"; }
mark begin sort; for i in 1 2 3; do seq 1 400000 | sort -r >"$TMPDIR/sorted-$i"; done; mark end sort; sleep 1
mark begin pack; for i in 1 2 3; do gzip -c "$TMPDIR/sorted-$i" >"$TMPDIR/packed-$i"; sleep 1; done; mark end pack; rm "$TMPDIR"/sorted-* "$TMPDIR"/packed-*; sleep 1`

// batch submits a command several times, on a size class; 0: the one that is learned.
func (s service) batch(t *testing.T, name string, class bench.SizeClass, n int, argv ...string) bench.RequestID {
	t.Helper()
	r := apiclient.NewRequest{PlacementWish: apiclient.PlacementWish{SizeClass: class}}
	for i := range n {
		r.Jobs = append(r.Jobs, apiclient.NewJob{Name: fmt.Sprintf("%s-%d", name, i+1), Command: apiclient.Command{Argv: argv}})
	}
	return s.submit(t, r)
}

// until waits until a request is like that.
func (s service) until(t *testing.T, id bench.RequestID, like func(apiclient.RequestDetail) bool) (d apiclient.RequestDetail) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		d, err = s.API.Request(t.Context(), string(id))
		require.NoError(t, err)
		return like(d)
	}, 4*patience, lookEvery, "request %s", id)
	return d
}
