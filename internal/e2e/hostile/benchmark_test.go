//go:build linux

package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// harm is one thing that a benchmark tries; the command attacker has it by its name.
type harm struct {
	name, what string
	// network lets the measured command have one, as a suite may ask for.
	network bool
	// command is set for what a submitted command tries, which has no suite.
	command bool
	// more is added to the benchmark in the suite.
	more string
	// says lists texts, one of which the job's message or output must show; empty: the refusal.
	says []string
}

// benchmarkHarms are all attempts, those last that could disturb what follows.
var benchmarkHarms = []harm{
	{name: "tokens", what: "read tokens of the state directory"},
	{name: "pass-env", what: "have a secret of the service passed to a step", says: []string{"--pass-env AWS_SECRET_ACCESS_KEY"}},
	{name: "environments", what: "read the environments of other processes"},
	{name: "command-lines", what: "read the command lines of other jobs"},
	{name: "memory-of", what: "open the memory of other processes"},
	{name: "open-files", what: "list the open files of other processes"},
	{name: "roots", what: "see the state directory through the root of another process"},
	{name: "spool-read", what: "read the spool"},
	{name: "logs", what: "read the logs of the service"},
	{name: "record", what: "read the databases' files"},
	{name: "slot-read", what: "read the work directory of another slot"},
	{name: "shared-memory", what: "find shared memory of an earlier job"},
	{name: "hidden-folders", what: "find secrets in folders that all share"},
	{name: "spool-write", what: "write to the spool"},
	{name: "artifact-write", what: "write to the artifact, and to the cache of artifacts"},
	{name: "suite-write", what: "write to its own suite"},
	{name: "suites-write", what: "write to the suites of a collector"},
	{name: "slot-write", what: "write a file of another slot"},
	{name: "slot-plant", what: "make a file in the work directory of another slot"},
	{name: "cache-of-another-suite", what: "read and write what a suite of the same name keeps for another project"},
	{name: "cache-by-a-command", what: "read and write what suites keep", command: true},
	{name: "proc-sys", what: "change settings of the kernel"},
	{name: "hostname", what: "name the machine"},
	{name: "modules", what: "load modules of the kernel"},
	{name: "postgres", what: "be the superuser of Postgres", network: true},
	{name: "ports", what: "reach ports of the service without a network"},
	{name: "descriptors", what: "find open files of its collector"},
	{name: "temporal", what: "read workflows in Temporal", network: true},
	{name: "temporal-task", what: "take a task from Temporal", network: true},
	{name: "temporal-kill", what: "end workflows in Temporal", network: true},
	{name: "temporal-ui", what: "read and end workflows in Temporal's Web UI", network: true},
	{name: "api", what: "use the routes of the API that write", network: true},
	{name: "raw-sockets", what: "make raw packets", network: true},
	{name: "cgroup-parent", what: "move to another control group"},
	{name: "cgroup-agent", what: "have the kernel start programs"},
	{name: "cgroup-mount", what: "mount the control groups anew"},
	{name: "mounts", what: "mount file systems"},
	{name: "unmounts", what: "remove mounts that hide and protect"},
	{name: "user-namespace", what: "be root in a user namespace"},
	{name: "namespaces", what: "enter the namespaces of others"},
	{name: "devices", what: "make and read devices"},
	{name: "setuid", what: "get rights from setuid programs"},
	{name: "signals", what: "signal the service"},
	{name: "signals-all", what: "kill all processes"},
	{name: "core-dump", what: "have the kernel write its memory to the disk"},
	{name: "ptrace", what: "trace the service"},
	{name: "priority", what: "raise its priority"},
	{name: "affinity", what: "use CPUs of others"},
	{name: "link-as-output", what: "have a file outside measured through a link", more: `sizes: {"size:out": out}`, says: []string{"no file matches"}},
	{name: "pipe-as-output", what: "have a pipe measured", more: `sizes: {"size:out": out}`, says: []string{"no file matches"}},
	{name: "link-for-a-step", what: "have a step write outside through a link", says: []string{"outside the directories"}},
	{name: "names", what: "leave names that are hard to remove", says: []string{"refused:", "killed at the disk limit"}},
	{name: "disk", what: "fill the disk with one file", says: []string{"file too large", "killed at the disk limit"}},
	{name: "disk-temp", what: "fill the disk with temporary files", says: []string{"killed at the disk limit"}},
	{name: "inodes", what: "fill the disk with empty files", says: []string{"killed at the disk limit"}},
	{name: "disk-cache", what: "fill the disk with what its suite keeps", more: keeping, says: []string{"killed at the disk limit"}},
	{name: "inodes-cache", what: "fill the disk with empty files that its suite keeps", more: keeping, says: []string{"killed at the disk limit"}},
	{name: "left-behind", what: "leave files in folders that all share"},
	{name: "double-fork", what: "leave processes behind"},
	{name: "cgroup-stay", what: "outlive its time limit in another control group", says: []string{"time limit"}},
	{name: "output", what: "print without end", says: []string{"printed"}},
	{name: "disk-shm", what: "fill the folder in memory", says: []string{"refused:", "memory limit"}},
	{name: "memory", what: "use up the memory", says: []string{"memory limit"}},
	{name: "children", what: "end with ten thousand children", says: []string{"refused:", "memory limit", noThread}},
	{name: "fork-bomb", what: "explode", says: []string{"refused:", "memory limit", "ended by signal", "time limit", noThread}},
}

// noThread shows that Go's runtime ended a process at the limit on processes, which counts threads too.
const noThread = "failed to create new OS thread"

// keeping tells the attacker where its suite keeps files.
const keeping = `env: {CACHE: "${cache}"}`

// wantBenchmarkHarms counts them, so that none is lost.
const wantBenchmarkHarms = 65

// Limits of the collectors under attack: small, so that what attacks them disturbs no other test.
const (
	memoryLimit    = 256 << 20 // a third of what all collectors have
	diskLimit      = 64 << 20
	filesLimit     = 2_000
	processesLimit = 512
)

// cloudSecret stands for what an operator has in the environment of the service. It is never written in one piece.
func cloudSecret() string { return strings.Join([]string{"planted", "cloud", "secret"}, "=") }

// bed is a stack under attack: a collector of class 1 runs the attacks, one of class 2 the job of a victim.
type bed struct {
	service
	victim    bench.RequestID
	endVictim func()
	processes map[string]int
	epochs    map[string]int64 // of the collectors
	targets   map[string]any
	outside   string
	// slots are the directories of the collectors, attacked is the first one's.
	slots    []string
	attacked string
	// kept is a file that the attacked collector keeps for a suite of another project, harms the files of the attacker's there.
	kept, harms string
}

// What a hostile benchmark tries fails and is recorded on its own job only, and a good job
// runs right afterwards on the same collector.
func TestLongAHostileBenchmark(t *testing.T) {
	t.Parallel()
	require.Len(t, benchmarkHarms, wantBenchmarkHarms)
	b := newBed(t)
	seen := make(map[string]bool)
	for _, h := range benchmarkHarms {
		require.False(t, seen[h.name], h.name)
		seen[h.name] = true
		t.Run(h.name, func(t *testing.T) { b.try(t, h) })
	}
	b.endVictim()
	d := b.await(t, b.victim)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.Len(t, d.Runs, 1)
}

const (
	attackedClass bench.SizeClass = 1
	victimClass   bench.SizeClass = 2
)

func newBed(t *testing.T) *bed {
	t.Helper()
	p := programs()
	p.Environ = []string{"AWS_SECRET_ACCESS_KEY=" + cloudSecret()}
	s, err := livestack.Start(t.Context(), p, "--collectors", "1x1,1x2", "--share-cores", "--co-located", "--isolation", "on", "--closed-read",
		"--memory", "768m", "--disk", strconv.Itoa(diskLimit), "--files", strconv.Itoa(filesLimit), "--processes", strconv.Itoa(processesLimit))
	require.NoError(t, err)
	t.Cleanup(func() {
		failed := t.Failed()
		if err := s.Stop(!failed); err != nil {
			t.Log(err)
			require.True(t, failed, "the stack did not stop well")
		}
	})
	b := &bed{service: service{Stack: s, url: s.Up.Addresses[up.AddressAPI]}}
	b.slots, err = filepath.Glob(filepath.Join(s.State(), "collectors", "*"))
	require.NoError(t, err)
	require.Len(t, b.slots, 2)
	b.outside, err = os.MkdirTemp("", "hostile-outside-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(b.outside)) })
	require.NoError(t, os.Chmod(b.outside, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(b.outside, "kept"), []byte("kept"), 0o644))
	b.startVictim(t)
	b.applyHarms(t)
	b.keep(t)
	b.processes, err = b.Processes()
	require.NoError(t, err)
	b.epochs = b.collectorEpochs(t)
	return b
}

// collectorEpochs returns the collectors with their epochs, which change when one is started anew.
func (b *bed) collectorEpochs(t *testing.T) map[string]int64 {
	t.Helper()
	all, err := b.API.Collectors(t.Context())
	require.NoError(t, err)
	epochs := make(map[string]int64)
	for _, c := range all {
		epochs[c.Name] = c.Epoch
	}
	return epochs
}

// startVictim starts a job with secrets, which runs until it is told to end.
func (b *bed) startVictim(t *testing.T) {
	t.Helper()
	script := `echo "$SECRET" >"$TMPDIR/kept"; until [ -e "$TMPDIR/end" ]; do sleep 0.2; done; [ "$(cat "$TMPDIR/kept")" = "$SECRET" ] # ` + cloudSecret()
	b.victim = b.submit(t, apiclient.NewRequest{Command: &apiclient.Command{
		Argv: []string{"sh", "-c", script}, Env: map[string]string{"SECRET": cloudSecret()},
	}, PlacementWish: apiclient.PlacementWish{SizeClass: victimClass}})
	run := b.runOf(t, b.victim)
	slot := slices.IndexFunc(b.slots, func(dir string) bool { return filepath.Base(dir) == run.Collector })
	require.GreaterOrEqual(t, slot, 0)
	var kept []string
	require.Eventually(t, func() bool {
		kept = nil
		_ = filepath.WalkDir(filepath.Join(b.slots[slot], "work"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "kept" {
				kept = append(kept, path)
			}
			return nil
		})
		return len(kept) == 1
	}, patience, patience/1000, "the victim writes no file")
	b.attacked = b.slots[1-slot]
	b.kept = filepath.Join(b.attacked, "caches", "neighbour", "harm", "kept")
	b.endVictim = func() {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(kept[0]), "end"), nil, 0o644))
	}
	d, err := b.API.Request(t.Context(), string(b.victim))
	require.NoError(t, err)
	b.targets = map[string]any{"VictimFile": kept[0], "Workflow": d.Jobs[0].WorkflowID}
}

// applyHarms makes a suite of all attempts. It holds the attacker, and all that it knows.
func (b *bed) applyHarms(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "attacker"), "./attacker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	artifacts := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(artifacts, "1.0"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(artifacts, "1.0", "version"), []byte("1.0"), 0o644))
	database, err := url.Parse(b.Up.Addresses[up.AddressDatabase])
	require.NoError(t, err)
	pids, err := b.Processes()
	require.NoError(t, err)
	var processes []int
	for _, pid := range pids {
		processes = append(processes, pid)
	}
	ui, err := url.Parse(b.Up.Addresses[up.AddressTemporalUI])
	require.NoError(t, err)
	for key, value := range map[string]any{
		"State": b.State(), "Slots": b.slots, "Needle": []string{"blm" + "_", cloudSecret()[:16]}, "Processes": processes,
		"Artifact": filepath.Join(artifacts, "1.0"), "Socket": filepath.Join(database.Query().Get("host"), ".s.PGSQL.5432"),
		"API": strings.TrimPrefix(b.url, "http://"), "Temporal": b.Up.Addresses[up.AddressTemporal], "UI": ui.Host, "UISocket": b.uiSocket(t), "Metrics": b.metricsAddresses(t),
		"Namespace": "benchloom", "TaskQueue": fmt.Sprintf("bench/%s/%d/local", target, attackedClass), "Routes": b.writing(t),
		"Outside": b.outside, "Kept": b.kept, "Shared": sharedFolders, "CPUs": []int{0}, "Memory": memoryLimit, "Disk": diskLimit, "Files": filesLimit, "PIDs": processesLimit,
	} {
		b.targets[key] = value
	}
	text, err := json.Marshal(b.targets)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "targets.json"), text, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(hostileSuite(artifacts)), 0o644))
	bundle, err := suite.Pack(dir)
	require.NoError(t, err)
	_, err = b.API.PutSuite(t.Context(), bundle.Hash, bundle.Archive)
	require.NoError(t, err)
	b.harms = filepath.Join(b.attacked, "suites", bundle.Hash)
	for _, project := range []string{"harm", "neighbour"} {
		_, err = b.API.ApplyProject(t.Context(), apiclient.Project{Name: project, Config: bench.ProjectConfig{Verify: bench.VerifyOff, MaxJobFails: 1}, SuiteHash: bundle.Hash}, false)
		require.NoError(t, err)
	}
}

// keep has the collector under attack keep a file for another project, whose suite has the same name.
func (b *bed) keep(t *testing.T) {
	t.Helper()
	d := b.await(t, b.submit(t, apiclient.NewRequest{
		Project: "neighbour", Type: bench.AdHoc, Tag: "1.0", Selection: bench.Selection{Benchmarks: []string{"keeper"}}, PlacementWish: apiclient.PlacementWish{SizeClass: attackedClass},
	}))
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.FileExists(t, b.kept)
}

// hostileSuite has a benchmark for each attempt, and one that is good.
func hostileSuite(artifacts string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "name: harm\nartifact: {provider: directory, parameters: {path: %q}}\niterations: 1\nbenchmarks:\n", artifacts+"/{tag}")
	text.WriteString("  - {name: keeper, measure: {run: [sh, -c, \"echo kept >${cache}/kept\"]}}\n")
	for _, h := range benchmarkHarms {
		limit := "60s"
		if h.name == "cgroup-stay" {
			limit = "2s"
		}
		run := fmt.Sprintf(`run: ["${suite}/attacker", "${suite}/targets.json", %s]`, h.name)
		prepare := "[]"
		if h.name == "link-for-a-step" {
			prepare = fmt.Sprintf("[{%s}, {write: {file: out/planted, text: planted}}]", run)
		}
		if h.name == "pass-env" {
			prepare = fmt.Sprintf("[{%s, pass_env: [AWS_SECRET_ACCESS_KEY]}]", run)
		}
		if h.network {
			run += ", network: true"
		}
		if h.more != "" {
			run += ", " + h.more
		}
		fmt.Fprintf(&text, "  - {name: %s, prepare: %s, timeouts: {measure: %s}, measure: {%s}}\n", h.name, prepare, limit, run)
	}
	return text.String()
}

// writing lists the routes of the API that write, with invented names in their paths.
func (b *bed) writing(t *testing.T) []string {
	t.Helper()
	r := b.call(t, "", http.MethodGet, "/openapi.json", nil)
	require.Equal(t, http.StatusOK, r.status, r)
	var document struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal([]byte(r.body), &document))
	var routes []string
	for path, methods := range document.Paths {
		for method := range methods {
			if method != "get" && method != "parameters" {
				routes = append(routes, strings.ToUpper(method)+" "+regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x"))
			}
		}
	}
	require.Greater(t, len(routes), 30)
	slices.Sort(routes)
	return routes
}

// uiSocket is the socket of Temporal's Web UI, by the command line of the process that listens there.
func (b *bed) uiSocket(t *testing.T) string {
	t.Helper()
	pids, err := b.Processes()
	require.NoError(t, err)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids["temporal"]))
	require.NoError(t, err)
	words := strings.Split(string(line), "\x00")
	at := slices.Index(words, "--ui-socket")
	require.GreaterOrEqual(t, at, 0, words)
	return words[at+1]
}

// try lets the attacker try one thing, and then a good job run.
func (b *bed) try(t *testing.T, h harm) {
	t.Helper()
	begin := time.Now()
	attempt := apiclient.NewRequest{Project: "harm", Type: bench.AdHoc, Tag: "1.0", Selection: bench.Selection{Benchmarks: []string{h.name}}}
	runs := 1
	if h.command {
		attempt, runs = apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{
			filepath.Join(b.harms, "attacker"), filepath.Join(b.harms, "targets.json"), h.name,
		}}}, bench.MaxJobFails
	}
	attempt.SizeClass = attackedClass
	id := b.submit(t, attempt)
	// From then on it waits behind the attempt.
	require.Eventually(t, func() bool {
		d, err := b.API.Request(t.Context(), string(id))
		return err == nil && len(d.Runs) > 0
	}, patience, patience/5000, "no collector runs the attempt")
	good := b.submit(t, apiclient.NewRequest{Command: &apiclient.Command{
		Argv: []string{"sh", "-c", `ls -A "$TMPDIR"; [ -z "$(ls -A "$TMPDIR")" ] && echo good >"$TMPDIR/good" && cat "$TMPDIR/good"`},
	}, PlacementWish: apiclient.PlacementWish{SizeClass: attackedClass}})

	d := b.await(t, id)
	tried := time.Now()
	require.Len(t, d.Runs, runs, "%+v", d.Runs)
	run := d.Runs[0]
	log := b.call(t, b.token(t, up.TokenUser), http.MethodGet, "/api/v1/runs/"+string(run.ID)+"/log", nil)
	said := d.Message + "\n" + run.Message + "\n" + log.body
	for _, e := range d.Errors {
		said += "\n" + e.Message + "\n" + e.OutputTail
	}
	shown := said[:min(len(said), 4000)]
	require.NotContains(t, said, "REACHED:", "it could %s:\n%s", h.what, shown)
	require.NotContains(t, said, "broken:", shown)
	require.Equal(t, bench.Failure, d.Outcome, shown)
	if len(h.says) == 0 {
		h.says = []string{"refused:"}
	}
	require.True(t, slices.ContainsFunc(h.says, func(s string) bool { return strings.Contains(said, s) }), "none of %q is in:\n%s", h.says, shown)

	g := b.await(t, good)
	require.Equal(t, bench.Success, g.Outcome, "the good job: %s", g.Message)
	require.Len(t, g.Runs, 1)
	require.Equal(t, run.Collector, g.Runs[0].Collector)
	require.Equal(t, filepath.Base(b.attacked), run.Collector)
	require.NotNil(t, run.FinishedAt)
	require.False(t, g.Runs[0].StartedAt.Before(*run.FinishedAt), "the good job ran before the attempt had ended")
	b.unharmed(t, h)
	t.Logf("the attempt took %.1f s, the good job and the check %.1f s", tried.Sub(begin).Seconds(), time.Since(tried).Seconds())
}

// sharedFolders lists the machine's folders in which a benchmark might leave something.
var sharedFolders = []string{
	"/", "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/run/user/*", "/var/crash", "/var/lock", "/home/*", "/opt", "/srv", "/mnt",
}

// What the attacker leaves in them, for others and because it was killed.
const (
	plantedName = "planted-by-a-benchmark"
	filledNames = "filled-by-a-benchmark-*"
)

// unharmed checks the machine and the service from outside.
func (b *bed) unharmed(t *testing.T, h harm) {
	t.Helper()
	processes, err := b.Processes()
	require.NoError(t, err)
	require.Equal(t, b.processes, processes, "a process of the service has ended")
	require.Equal(t, b.epochs, b.collectorEpochs(t), "a collector has been started anew")
	d, err := b.API.Request(t.Context(), string(b.victim))
	require.NoError(t, err)
	require.NotEqual(t, bench.Completed, d.Status, "the victim's job has ended: %s", d.Message)
	require.Len(t, d.Runs, 1)

	var left []string
	for _, folder := range sharedFolders {
		for _, name := range []string{plantedName, filledNames} {
			found, err := filepath.Glob(filepath.Join(folder, name))
			require.NoError(t, err)
			left = append(left, found...)
		}
	}
	for _, path := range left {
		require.NoError(t, os.Remove(path))
	}
	require.Empty(t, left, "left for others")
	entries, err := os.ReadDir(b.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	kept, err := os.ReadFile(filepath.Join(b.outside, "kept"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
	kept, err = os.ReadFile(b.kept)
	require.NoError(t, err)
	require.Equal(t, "kept\n", string(kept), "what another project's suite keeps")
	// After the attempt, before the good job: more than half of the limit is not kept.
	caches, err := diskspace.Measure(t.Context(), filepath.Join(b.attacked, "caches"), time.Time{})
	require.NoError(t, err)
	require.False(t, caches.Exceeds(diskspace.Usage{Bytes: diskLimit / 2, Files: filesLimit / 2}), "%+v", caches)
	require.Empty(t, attackers(t), "processes of the attempt %q live", h.name)
}

// attackers lists the command lines of attackers that live.
func attackers(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("/targets.json\x00")) {
			continue
		}
		state, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && regexp.MustCompile(`\) [ZX] `).Match(state) {
			continue
		}
		found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return found
}
