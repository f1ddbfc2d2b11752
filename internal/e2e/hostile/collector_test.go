package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
)

// victim is the work of the service's collectors, each as long as its file is held: a build,
// and a command with a secret in its environment.
type victim struct {
	service
	build, command          apiclient.Run
	buildFor, commandFor    bench.RequestID
	releaseBuild, releaseIt func()
	// dispatched is the input of the command's RunJob activity, as the history shows it.
	dispatched map[string]any
	taskQueue  string
}

const secretValue = "hunter2hunter2"

func startVictim(t *testing.T, s service) *victim {
	t.Helper()
	v := &victim{service: s}
	file, release := held(t)
	v.releaseBuild = release
	repository := filepath.Join(filepath.Dir(file), "repository")
	script := `set -e; mkdir "$1"; cd "$1"; echo honest >id; git init -q -b main; git add id
git -c user.name=A -c user.email=a@example.org -c commit.gpgsign=false commit -q -m first`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", repository).CombinedOutput()
	require.NoError(t, err, string(out))
	s.apply(t, "victim", fmt.Sprintf(`name: victim
artifact:
  provider: build
  parameters:
    repository: %s
    command: [sh, -c, "while [ -e %s ]; do sleep 0.05; done; mkdir out && cp id out/id"]
    output: out
iterations: 2
benchmarks:
  - {name: id, measure: {run: [grep, -q, honest, "${artifact}/id"]}}
`, repository, file))
	v.buildFor = s.submit(t, apiclient.NewRequest{Project: "victim", Type: bench.AdHoc, Tag: "main", PlacementWish: apiclient.PlacementWish{SizeClass: 1}})

	file, v.releaseIt = held(t)
	v.commandFor = s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{
		Argv: []string{"sh", "-c", "while [ -e " + file + " ]; do sleep 0.05; done"}, Env: map[string]string{"SECRET": secretValue},
	}, PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
	v.build, v.command = s.runOf(t, v.buildFor), s.runOf(t, v.commandFor)
	d, err := s.API.Request(t.Context(), string(v.commandFor))
	require.NoError(t, err)
	v.taskQueue, v.dispatched = scheduled(t, s.temporal(t), d.Jobs[0].WorkflowID)
	return v
}

func (s service) submit(t *testing.T, r apiclient.NewRequest) bench.RequestID {
	t.Helper()
	created, err := s.API.CreateRequest(t.Context(), r)
	require.NoError(t, err)
	return created.ID
}

// scheduled reads from Temporal's history how a job was last dispatched: everybody who
// reaches Temporal can.
func scheduled(t *testing.T, c client.Client, workflow string) (taskQueue string, input map[string]any) {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), workflow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == protocol.RunJob {
			taskQueue, input = a.GetTaskQueue().GetName(), nil
			require.NoError(t, json.Unmarshal(a.GetInput().GetPayloads()[0].GetData(), &input))
		}
	}
	require.NotNil(t, input, "%s never dispatched its job", workflow)
	return taskQueue, input
}

// attempt is something that a hostile collector tries. What it gets must be a refusal of
// one of the kinds; none: any refusal.
type attempt struct {
	name  string
	do    func(t *testing.T) reply
	kinds []string
}

// wantAttempts counts them, so that none is lost.
const wantAttempts = 56

// Mallory is a collector with its own token, its own pool, HTTP and Temporal, and knows
// every ID and all that Temporal's histories hold.
func TestAHostileCollector(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	v := startVictim(t, s)
	m := s.enrol(t, "mallory", 7)
	attempts := append(v.onOthersRuns(m), v.atTheFence(t, m)...)
	attempts = append(attempts, v.asNeighbour(t)...)
	attempts = append(attempts, v.ofIdentity(t, m)...)
	attempts = append(attempts, v.ofRoles(m)...)
	attempts = append(attempts, v.ofForm(t, m)...)
	require.Len(t, attempts, wantAttempts)
	seen := make(map[string]bool)
	for _, a := range attempts {
		require.False(t, seen[a.name], a.name)
		seen[a.name] = true
		t.Run(a.name, func(t *testing.T) {
			r := a.do(t)
			require.GreaterOrEqual(t, r.status, 400, "accepted: %s", r)
			require.Less(t, r.status, 500, "an internal error: %s", r)
			require.NotContains(t, r.body, secretValue)
			if len(a.kinds) > 0 {
				require.Contains(t, a.kinds, r.kind, r.String())
			}
		})
	}
	v.unharmed(t, m)
}

// onOthersRuns writes to runs of others.
func (v *victim) onOthersRuns(m *enrolled) []attempt {
	post := func(method, path string, body any) func(t *testing.T) reply {
		return func(t *testing.T) reply { return v.call(t, m.token, method, "/api/v1"+path, body) }
	}
	notYours := []string{"not-yours"}
	forged := forgedBlock(1e-6)
	return []attempt{
		{"a planted piece of another's build", post(http.MethodPut, "/runs/"+string(v.build.ID)+"/build/chunks/0", []byte("planted")), notYours},
		{"another's build finished", post(http.MethodPost, "/runs/"+string(v.build.ID)+"/build/finish", map[string]any{"size": 7, "sha256": hash("planted")}), notYours},
		{"results for another's run", post(http.MethodPost, "/runs/"+string(v.command.ID)+"/blocks/1", forged), notYours},
		{"results for another's build", post(http.MethodPost, "/runs/"+string(v.build.ID)+"/blocks/1", forged), notYours},
		{"samples for another's run", post(http.MethodPost, "/runs/"+string(v.command.ID)+"/profile/batches", forgedSamples()), notYours},
		{"samples for another's build", post(http.MethodPost, "/runs/"+string(v.build.ID)+"/profile/batches", forgedSamples()), notYours},
		{"output for another's run", post(http.MethodPost, "/runs/"+string(v.command.ID)+"/log?offset=0", []byte("planted")), notYours},
		{"another's run finished", post(http.MethodPost, "/runs/"+string(v.command.ID)+"/finish", map[string]any{"outcome": "success"}), notYours},
		{"another's run failed", post(http.MethodPost, "/runs/"+string(v.command.ID)+"/finish", map[string]any{"outcome": "failure"}), notYours},
		{"another's run cancelled", post(http.MethodPost, "/runs/"+string(v.build.ID)+"/finish", map[string]any{"outcome": "cancelled"}), notYours},
		{"another's heartbeat", post(http.MethodPost, "/collectors/"+v.command.Collector+"/heartbeat", map[string]any{"epoch": 1}), notYours},
		{"another's run in one's own heartbeat", func(t *testing.T) reply {
			r := v.call(t, m.token, http.MethodPost, "/api/v1/collectors/"+m.name+"/heartbeat", map[string]any{
				"epoch": m.epoch, "run": v.command.ID, "progress": map[string]any{"phase": "planted", "done": 1, "total": 1},
			})
			if r.status < 300 { // the heartbeat may be taken, but says nothing about that run
				require.NotEqual(t, "planted", v.runOf(t, v.commandFor).Progress.Phase)
				r.status, r.kind = http.StatusForbidden, "ignored"
			}
			return r
		}, nil},
	}
}

// forgedBlock claims results for a test case of a command.
func forgedBlock(seconds float64) map[string]any {
	return map[string]any{"results": []any{map[string]any{
		"test_case":   map[string]any{"benchmark": "command", "profile": "", "scenario": "", "backend": "", "target": target},
		"collections": []any{map[string]any{"iteration": 1, "collected_at": time.Now(), "values": map[string]any{"wall-time": seconds}}},
	}}}
}

// forgedSamples claims that a run used no CPU.
func forgedSamples() profiler.Upload {
	series := profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}
	return profiler.Upload{Attempt: "planted", Host: "mallory", Batches: []profiler.Batch{{
		Series: series, Unit: series.Unit(), Attempt: "planted", Host: "mallory", Values: []float64{0}, Batches: []int{1}, Times: []time.Time{time.Now()},
	}}}
}

// atTheFence tries to begin runs of jobs that were dispatched to others.
func (v *victim) atTheFence(t *testing.T, m *enrolled) []attempt {
	t.Helper()
	begin := func(run bench.RunID, change map[string]any) func(t *testing.T) reply {
		return func(t *testing.T) reply {
			body := map[string]any{"reason": "scheduled", "collector": m.name, "epoch": m.epoch}
			maps.Copy(body, change)
			return v.call(t, m.token, http.MethodPost, "/api/v1/runs/"+string(run)+"/start", body)
		}
	}
	own := bench.NewRunID(v.command.Job, "mallory", "activity", 1)
	guessed := "7a0c9b34-2d0a-4f8e-9a51-7e1c6f0d2b11"
	dispatch := v.dispatched["Dispatch"]
	closed := []string{}
	return []attempt{
		{"another's job with a copied key", begin(own, nil), closed},
		{"another's job as a retry", begin(own, map[string]any{"reason": "retry"}), closed},
		{"another's build", begin(bench.NewRunID(v.build.Job, "mallory", "activity", 1), nil), closed},
		{"another's run by its ID", begin(v.command.ID, nil), closed},
		{"a guessed secret of the dispatch", begin(own, map[string]any{"dispatch": guessed}), closed},
		{"a copied secret of the dispatch", begin(own, map[string]any{"dispatch": dispatch}), closed},
		{"a copied secret, and the task queue", begin(own, map[string]any{"dispatch": dispatch, "task_queue": v.taskQueue}), closed},
		{"a copied secret, and one's own task queue", begin(own, map[string]any{"dispatch": dispatch, "task_queue": "bench/" + string(target) + "/7/pool-of-mallory"}), closed},
		{"a copied secret, for another's run by its ID", begin(v.command.ID, map[string]any{"dispatch": dispatch, "task_queue": v.taskQueue}), closed},
		{"the name of another", begin(own, map[string]any{"collector": v.command.Collector, "dispatch": dispatch}), []string{"not-yours", "invalid"}},
		{"an old epoch", func(t *testing.T) reply {
			old := m.epoch
			m.register(t, v.service)
			return v.call(t, m.token, http.MethodPost, "/api/v1/collectors/"+m.name+"/heartbeat", map[string]any{"epoch": old})
		}, []string{"fenced"}},
		{"a job that does not exist", begin(bench.NewRunID("aaaaaaaaaaaaaaaa", "mallory", "activity", 1), nil), nil},
	}
}

// asNeighbour tries to begin runs as a collector that serves the task queue of the victim's
// job, so that only the secret of the dispatch is in its way.
func (v *victim) asNeighbour(t *testing.T) []attempt {
	t.Helper()
	victims, err := v.API.Collector(t.Context(), v.command.Collector)
	require.NoError(t, err)
	n := v.enrolIn(t, "neighbour", victims.SizeClass, victims.Pool)
	t.Cleanup(func() { require.NoError(t, v.API.RemoveCollector(context.WithoutCancel(t.Context()), n.name, true)) })
	begin := func(run bench.RunID, change map[string]any) func(t *testing.T) reply {
		return func(t *testing.T) reply {
			body := map[string]any{"reason": "scheduled", "collector": n.name, "epoch": n.epoch, "task_queue": v.taskQueue}
			maps.Copy(body, change)
			return v.call(t, n.token, http.MethodPost, "/api/v1/runs/"+string(run)+"/start", body)
		}
	}
	own := bench.NewRunID(v.command.Job, "neighbour", "activity", 1)
	dispatch := v.dispatched["Dispatch"]
	stale := []string{"stale-dispatch"}
	return []attempt{
		{"a neighbour without the secret", begin(own, nil), stale},
		{"a neighbour with a guessed secret", begin(own, map[string]any{"dispatch": "7a0c9b34-2d0a-4f8e-9a51-7e1c6f0d2b11"}), stale},
		{"a neighbour with the secret of another job", begin(bench.NewRunID(v.build.Job, "neighbour", "activity", 1), map[string]any{"dispatch": dispatch}), stale},
		{"a neighbour with a copied secret", begin(own, map[string]any{"dispatch": dispatch}), []string{"under-way"}},
		{"a neighbour, for another's run by its ID", begin(v.command.ID, map[string]any{"dispatch": dispatch}), []string{"not-yours"}},
	}
}

// ofIdentity claims to be another collector, or another machine.
func (v *victim) ofIdentity(t *testing.T, m *enrolled) []attempt {
	t.Helper()
	victims, err := v.API.Collector(t.Context(), v.command.Collector)
	require.NoError(t, err)
	register := func(change map[string]any) func(t *testing.T) reply {
		return func(t *testing.T) reply {
			body := maps.Clone(m.registration)
			maps.Copy(body, change)
			return v.call(t, m.token, http.MethodPost, "/api/v1/collectors/register", body)
		}
	}
	configured := []string{"not-configured"}
	return []attempt{
		{"a registration under another's name", register(map[string]any{"name": victims.Name}), []string{"not-yours"}},
		{"a registration under a new name", register(map[string]any{"name": "mallory-2"}), []string{"not-yours"}},
		{"a registration in another's pool", register(map[string]any{"pool": victims.Pool}), configured},
		{"a registration in another's size class", register(map[string]any{"size_class": int(victims.SizeClass)}), configured},
		{"a registration for another target", register(map[string]any{"target": "aarch64-unknown-linux-gnu"}), nil},
		{"a registration with another's hardware", register(map[string]any{"hardware_id": victims.HardwareID}), []string{"new-machine"}},
		{"a registration as a slot of another", register(map[string]any{"name": victims.Name + "-c1-1", "shared_host": victims.Name}), []string{"not-yours"}},
		{"an enrolment token that was used", func(t *testing.T) reply {
			return v.call(t, m.token, http.MethodPost, "/api/v1/collectors/enroll", map[string]any{"token": m.invitation, "secret_hash": hash("another")})
		}, []string{"enrolled"}},
		{"a guessed enrolment token", func(t *testing.T) reply {
			return v.call(t, "", http.MethodPost, "/api/v1/collectors/enroll", map[string]any{"token": "ble_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "secret_hash": hash("another")})
		}, []string{"unknown-invitation"}},
		{"the shared token under another's name", func(t *testing.T) reply {
			body := maps.Clone(m.registration)
			body["name"], body["target"], body["size_class"], body["pool"] = m.name, target, 7, "pool-of-mallory"
			return v.call(t, v.token(t, up.TokenCollector), http.MethodPost, "/api/v1/collectors/register", body)
		}, nil},
	}
}

// ofRoles does what is for people.
func (v *victim) ofRoles(m *enrolled) []attempt {
	forbidden := func(method, path string, body any) func(t *testing.T) reply {
		return func(t *testing.T) reply { return v.call(t, m.token, method, "/api/v1"+path, body) }
	}
	why := map[string]any{"reason": "because"}
	kinds := []string{"forbidden"}
	return []attempt{
		{"a request of one's own", forbidden(http.MethodPost, "/requests", map[string]any{"command": map[string]any{"argv": []string{"id"}}}), kinds},
		{"a cancellation", forbidden(http.MethodPost, "/requests/"+string(v.commandFor)+"/cancel", why), kinds},
		{"a suite", forbidden(http.MethodPut, "/suites/"+hash("x"), []byte("x")), kinds},
		{"a project", forbidden(http.MethodPut, "/projects/victim", map[string]any{"name": "victim", "config": map[string]any{}}), kinds},
		{"another collector drained", forbidden(http.MethodPost, "/collectors/"+v.command.Collector+"/drain", nil), kinds},
		{"another collector removed", forbidden(http.MethodDelete, "/collectors/"+v.command.Collector+"?force=true", nil), kinds},
		{"an invitation", forbidden(http.MethodPost, "/collectors/invitations", map[string]any{"name": "eve", "target": target, "size_class": 1, "pool": "p"}), kinds},
		{"a token", forbidden(http.MethodPost, "/tokens", map[string]any{"owner": "mallory", "role": "admin"}), kinds},
		{"the list of tokens", forbidden(http.MethodGet, "/tokens", nil), kinds},
		{"results invalidated", forbidden(http.MethodPost, "/results/invalidate", map[string]any{"project": "victim", "reason": "because"}), kinds},
	}
}

// ofForm sends what is no sensible body or path.
func (v *victim) ofForm(t *testing.T, m *enrolled) []attempt {
	t.Helper()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := z.Write(bytes.Repeat([]byte(" "), 256<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	post := func(path string, body any, headers ...string) func(t *testing.T) reply {
		return func(t *testing.T) reply { return v.call(t, m.token, http.MethodPost, "/api/v1"+path, body, headers...) }
	}
	beat := "/collectors/" + m.name + "/heartbeat"
	return []attempt{
		{"a path out of the collectors", post("/collectors/..%2f..%2fmallory/heartbeat", map[string]any{"epoch": 1}), nil},
		{"a run's ID with a path", post("/runs/..%2f..%2fetc%2fpasswd/finish", map[string]any{"outcome": "success"}), nil},
		{"a giant body", post(beat, strings.Repeat(" ", 64<<20)), []string{"too-large"}},
		{"a bomb of zeros", post("/runs/"+string(v.command.ID)+"/blocks/1", bomb.Bytes(), "Content-Type", "application/json", "Content-Encoding", "gzip"), nil},
		{"a bomb of samples", post("/runs/"+string(v.command.ID)+"/profile/batches", bomb.Bytes(), "Content-Type", "application/json", "Content-Encoding", "gzip"), nil},
		{"a negative offset", post("/runs/"+string(v.command.ID)+"/log?offset=-1", []byte("x")), nil},
		{"a negative memory", post("/collectors/register", merged(m.registration, "memory_bytes", -1)), nil},
	}
}

func merged(m map[string]any, key string, value any) map[string]any {
	m = maps.Clone(m)
	m[key] = value
	return m
}

// unharmed checks that everything went on as if nothing had been tried: the build is the
// honest one, and each job had one run.
func (v *victim) unharmed(t *testing.T, m *enrolled) {
	t.Helper()
	for _, id := range []bench.RequestID{v.buildFor, v.commandFor} {
		d, err := v.API.Request(t.Context(), string(id))
		require.NoError(t, err)
		require.Len(t, d.Runs, 1, "%+v", d.Runs)
		require.Nil(t, d.Runs[0].FinishedAt)
	}
	v.releaseBuild()
	v.releaseIt()
	for _, id := range []bench.RequestID{v.buildFor, v.commandFor} {
		d := v.await(t, id)
		require.Equal(t, bench.Success, d.Outcome, d.Message)
		for _, r := range d.Runs {
			require.NotEqual(t, m.name, r.Collector)
			require.Equal(t, bench.RunSuccess, r.Outcome, r.Message)
		}
	}
	log := v.call(t, v.token(t, up.TokenUser), http.MethodGet, "/api/v1/runs/"+string(v.command.ID)+"/log", nil)
	require.NotContains(t, log.body, "planted")
	var forged int
	require.NoError(t, v.database(t).QueryRow(t.Context(), `select count(*) from job_run where collector in ($1, 'neighbour')`, m.name).Scan(&forged))
	require.Zero(t, forged)
}

// A shared token, which every machine has, gives no access to anything but enrolment.
func TestTheSharedTokenOnlyEnrols(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	own := s.enrol(t, "innocent", 9)
	shared := s.token(t, up.TokenCollector)
	run := bench.NewRunID("aaaaaaaaaaaaaaaa", "workflow", "activity", 1)
	for path, body := range map[string]any{
		"/collectors/innocent/heartbeat":            map[string]any{"epoch": own.epoch},
		"/runs/" + string(run) + "/start":           map[string]any{"reason": "scheduled", "collector": own.name, "epoch": own.epoch},
		"/runs/" + string(run) + "/blocks/1":        forgedBlock(1),
		"/runs/" + string(run) + "/log?offset=0":    []byte("planted"),
		"/runs/" + string(run) + "/finish":          map[string]any{"outcome": "success"},
		"/runs/" + string(run) + "/build/finish":    map[string]any{"size": 7, "sha256": hash("planted")},
		"/runs/" + string(run) + "/profile/batches": forgedSamples(),
		"/collectors/register":                      own.registration,
	} {
		r := s.call(t, shared, http.MethodPost, "/api/v1"+path, body)
		require.Equal(t, http.StatusForbidden, r.status, "%s: %s", path, r)
	}
	r := s.call(t, shared, http.MethodPut, "/api/v1/runs/"+string(run)+"/build/chunks/0", []byte("planted"))
	require.Equal(t, http.StatusForbidden, r.status, r.String())
	r = s.call(t, shared, http.MethodGet, "/api/v1/builds/"+strings.Repeat("0", 64)+"/chunks/0", nil)
	require.Equal(t, http.StatusForbidden, r.status, r.String())
}
