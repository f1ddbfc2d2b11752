package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// gatewaySuite has benchmarks that print what their artifact is said to need, so that what
// pages show of them depends little on the machine.
const gatewaySuite = `name: gateway
description: a web gateway, release by release
artifact: {provider: directory, parameters: {path: "%s/{tag}"}}
iterations: 5
procedures:
  runtime:
    measure: {run: [sh, "${suite}/measure.sh", "${artifact}", "${name}"], output: benchfmt, metrics: [ns/op]}
benchmarks:
  - {name: parse, kind: runtime, vars: {name: parse}}
  - {name: route, kind: runtime, vars: {name: route}}
  - {name: render, kind: runtime, vars: {name: render}}
  - {name: compress, kind: runtime, vars: {name: compress}}
`

// measureScript makes rendering slower in release 1.2.0; 1.3.0 fails, 1.4.0 takes its time.
const measureScript = `tag=$(basename "$1")
case $2 in parse) n=1248 ;; route) n=316 ;; render) n=5410 ;; *) n=8875 ;; esac
case $tag-$2 in
1.2.0-render) n=6125 ;;
1.3.0-compress) echo "compress: level 9 needs a dictionary, and there is none" >&2; exit 3 ;;
1.4.0-*) sleep 900 ;;
esac
echo "BenchmarkGateway 1 $n.0$(($$ % 5)) ns/op"
`

// typicalWorld is a service as people find it: releases with a verdict and with a failure,
// one in progress behind which others wait, commands, and a paused project.
func typicalWorld(t *testing.T, s service) world {
	t.Helper()
	s.apply(t, "gateway", "A web gateway, release by release.")
	s.apply(t, "plugins", "What others add to the gateway.")
	ended := func(id bench.RequestID) apiclient.RequestDetail {
		return s.until(t, id, func(d apiclient.RequestDetail) bool { return d.Status == bench.Completed })
	}
	ended(s.batch(t, "index", 0, 4, "sh", "-c", "seq 1 200000 | sort -r | tail -n 1"))
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		done := ended(s.release(t, "gateway", tag))
		require.Equal(t, bench.Success, done.Outcome, "%s: %s", tag, done.Message)
	}
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
	return world{s, map[string]string{
		"overview": "/", "project": "/projects/gateway", "order": "/projects/gateway/queue", "compare": "/projects/gateway/compare?a=1.1.0&b=1.2.0", "history": "/projects/gateway/history", "queues": "/queues",
		"request": "/requests/gateway:1.2.0", "request-failed": "/requests/gateway:1.3.0", "request-running": "/requests/" + string(nightly.ID),
		"again": "/requests/gateway:1.2.0/again", "collectors": "/collectors", "collector": "/collectors/local-1",
		"sizeclasses": "/sizeclasses", "sizeclass": "/sizeclasses/" + learned.Shape,
		"job": "/jobs/" + string(waiting.Key), "run": "/runs/" + string(failed.Errors[0].Run), "audit": "/audit", "help": "/help", "sign-in": "/sign-in",
	}}
}

// apply makes a project with the suite of the gateway.
func (s service) apply(t *testing.T, name, description string) {
	t.Helper()
	root := t.TempDir()
	dir, artifacts := filepath.Join(root, "suite"), filepath.Join(root, "artifacts")
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(artifacts, tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(artifacts, tag, "VERSION"), []byte(tag+"\n"), 0o644))
	}
	require.NoError(t, os.Mkdir(dir, 0o755))
	for file, text := range map[string]string{"suite.yaml": fmt.Sprintf(gatewaySuite, artifacts), "measure.sh": measureScript} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	bundle, err := suite.Pack(dir)
	require.NoError(t, err)
	_, err = s.API.PutSuite(t.Context(), bundle.Hash, bundle.Archive)
	require.NoError(t, err)
	_, err = s.API.ApplyProject(t.Context(), apiclient.Project{Name: name, Config: bench.ProjectConfig{Description: description}, SuiteHash: bundle.Hash}, false)
	require.NoError(t, err)
}

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
