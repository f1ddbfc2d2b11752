package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// registerAs registers a live collector of size class 2 after a change.
func (b *bundle) registerAs(t *testing.T, name string, change func(*apiclient.Registration)) apiclient.Registered {
	t.Helper()
	r := registration(name)
	change(&r)
	registered, err := b.collector.RegisterCollector(t.Context(), r)
	require.NoError(t, err)
	return registered
}

func command(c bench.ConstraintSpec) apiclient.NewRequest {
	return apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}, PlacementWish: apiclient.PlacementWish{Constraints: c}}
}

// What no registered machine can meet is refused at submission, naming each
// constraint and the nearest candidate; what only machines that are away meet
// waits, with a warning.
func TestConstraintsAtSubmission(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registerAs(t, "plain", func(r *apiclient.Registration) { r.MemoryBytes, r.CPUs = 16<<30, 4 })
	b.registerAs(t, "card", func(r *apiclient.Registration) {
		r.Devices, r.MachineGroup, r.Labels, r.MachineType = []string{"gpu"}, "epyc", map[string]string{"rack": "2"}, "vm"
	})
	for name, c := range map[string]struct {
		spec bench.ConstraintSpec
		want []string
	}{
		"exclude each other": {bench.ConstraintSpec{Machines: []string{"plain"}, Groups: []string{"epyc"}}, []string{"machine plain and group epyc exclude each other", "nearest is"}},
		"unknown device":     {bench.ConstraintSpec{Devices: []string{"fpga"}}, []string{"no collector has device fpga", "it has no device fpga"}},
		"999 GB":             {bench.ConstraintSpec{Memory: "999GB"}, []string{"no collector has memory of 999g", "a job may use 16g of memory there"}},
		"minus one":          {bench.ConstraintSpec{Memory: "-1"}, []string{`memory "-1": write a whole number of gigabytes`}},
		"nobody's label":     {bench.ConstraintSpec{Labels: map[string]string{"color": "red"}}, []string{"no collector has label color=red"}},
		"unknown type":       {bench.ConstraintSpec{Type: "pc"}, []string{`type of machine "pc": use hw, vm, dc`}},
	} {
		_, err := b.writer.CreateRequest(t.Context(), command(c.spec))
		p := problemOf(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, p.Status, name)
		for _, want := range c.want {
			require.Contains(t, p.Detail, want, name)
		}
	}

	var first apiclient.Request
	for i, memory := range []string{"8 gb", "8192m", "8g", "8G", "8"} {
		wanted := command(bench.ConstraintSpec{Memory: memory, CPUs: 3})
		wanted.IdempotencyKey = "one amount"
		created, err := b.writer.CreateRequest(t.Context(), wanted)
		require.NoError(t, err, memory)
		require.Equal(t, i == 0, created.Created)
		require.Equal(t, bench.ConstraintSpec{Memory: "8g", CPUs: 3}, created.Constraints)
		require.Empty(t, created.Warnings)
		if i == 0 {
			first = created
		}
		require.Equal(t, first.ID, created.ID, "every spelling is the same")
	}
	wanted := command(bench.ConstraintSpec{Memory: "9g", CPUs: 3})
	wanted.IdempotencyKey = "one amount"
	_, err := b.writer.CreateRequest(t.Context(), wanted)
	require.Contains(t, problemOf(t, err).Detail, "another set of constraints")

	// A set's only machine is away.
	_, err = b.admin.DrainCollector(t.Context(), "card", "")
	require.NoError(t, err)
	created, err := b.writer.CreateRequest(t.Context(), command(bench.ConstraintSpec{Type: "vm", Labels: map[string]string{"rack": "2"}}))
	require.NoError(t, err)
	require.Len(t, created.Warnings, 1)
	require.Contains(t, created.Warnings[0], "no collector that can run it is live now, of those registered: card (drained")

	// A tracked request runs where its project says, and an ad-hoc one there as well.
	project := b.project(t)
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0", PlacementWish: apiclient.PlacementWish{Constraints: bench.ConstraintSpec{CPUs: 1}}})
	require.Contains(t, problemOf(t, err).Detail, "leave constraints out, or use type adhoc")
	project.Config.Targets = []bench.Target{linux}
	project.Config.Constraints = bench.ConstraintSpec{Machines: []string{"plain"}}
	_, err = b.admin.ApplyProject(t.Context(), project, false)
	require.NoError(t, err)
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	adHoc := apiclient.NewRequest{Project: "go", Tag: "1.26.0", Type: bench.AdHoc, PlacementWish: apiclient.PlacementWish{Constraints: bench.ConstraintSpec{Machines: []string{"card"}}}}
	_, err = b.writer.CreateRequest(t.Context(), adHoc)
	require.Contains(t, problemOf(t, err).Detail, "machine plain and card exclude each other")
	project.Config.Constraints = bench.ConstraintSpec{Memory: "1e9"}
	_, err = b.admin.ApplyProject(t.Context(), project, false)
	require.Contains(t, problemOf(t, err).Detail, `constraints: memory "1e9"`)
}

// What a collector is travels with its registration, or with its invitation; its
// caches with its heartbeats.
func TestCollectorTraitsAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.TemporalAddress = "temporal.example.com:7233" })
	c := b.registerAs(t, "big-c2-1", func(r *apiclient.Registration) {
		r.MachineType, r.MachineGroup, r.Devices, r.MemoryBytes, r.CPUs = "dc", "taishan", []string{"gpu"}, 8<<30, 4
		r.CacheDirs, r.SharedHost = []string{"go"}, "big"
	})
	shown, err := b.nobody.Collector(t.Context(), "big-c2-1")
	require.NoError(t, err)
	require.Equal(t, []any{"dc", "taishan", []string{"gpu"}, int64(8 << 30), 4, []string{"go"}, "big"},
		[]any{shown.MachineType, shown.MachineGroup, shown.Devices, shown.MemoryBytes, shown.CPUs, shown.CacheDirs, shown.Host})

	_, err = b.collector.Heartbeat(t.Context(), "big-c2-1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, CacheDirs: &[]string{"go", "go/mod"}})
	require.NoError(t, err)
	_, err = b.collector.Heartbeat(t.Context(), "big-c2-1", apiclient.Heartbeat{Epoch: c.Collector.Epoch})
	require.NoError(t, err)
	shown, err = b.nobody.Collector(t.Context(), "big-c2-1")
	require.NoError(t, err)
	require.Equal(t, []string{"go", "go/mod"}, shown.CacheDirs)
	_, err = b.collector.Heartbeat(t.Context(), "big-c2-1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, CacheDirs: &[]string{"../etc"}})
	require.Contains(t, problemOf(t, err).Detail, "cache directory")

	for want, change := range map[string]func(*apiclient.Registration){
		"type of machine": func(r *apiclient.Registration) { r.MachineType = "pc" },
		"machine group":   func(r *apiclient.Registration) { r.MachineGroup = "A B" },
		"device":          func(r *apiclient.Registration) { r.Devices = []string{""} },
		"shared host":     func(r *apiclient.Registration) { r.SharedHost = "/" },
		"cache directory": func(r *apiclient.Registration) { r.CacheDirs = []string{"a/b/c"} },
	} {
		r := registration("two")
		change(&r)
		_, err := b.collector.RegisterCollector(t.Context(), r)
		require.Contains(t, problemOf(t, err).Detail, want)
	}

	invite := apiclient.Invite{Name: "three", Target: linux, SizeClass: 2, Pool: "main", MachineType: "vm", MachineGroup: "epyc", Devices: []string{"nvme"}}
	invited, err := b.admin.InviteCollector(t.Context(), invite)
	require.NoError(t, err)
	require.Equal(t, []any{"vm", "epyc", []string{"nvme"}}, []any{invited.MachineType, invited.MachineGroup, invited.Devices})
	three := unnamed("three")
	three.Devices = []string{"program:perf", "program:nc", "perf", "gpu"}
	_, err = b.accept(t, invited).RegisterCollector(t.Context(), three)
	require.NoError(t, err)
	shown, err = b.nobody.Collector(t.Context(), "three")
	require.NoError(t, err)
	require.Equal(t, []string{"nvme", "program:perf"}, shown.Devices, "programs of profilers are found, everything else is configured")
	invite.Name, invite.Devices = "four", []string{"\x00"}
	_, err = b.admin.InviteCollector(t.Context(), invite)
	require.Contains(t, problemOf(t, err).Detail, "device")
}

// Each job of a batch may say where it runs; the request says it for the others.
func TestConstraintsOfABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registerAs(t, "plain", func(*apiclient.Registration) {})
	b.registerAs(t, "card", func(r *apiclient.Registration) { r.Devices, r.CacheDirs = []string{"gpu"}, []string{"go"} })
	run := apiclient.Command{Argv: []string{"true"}}
	at := func(c bench.ConstraintSpec) apiclient.NewJob {
		return apiclient.NewJob{Command: run, PlacementWish: apiclient.PlacementWish{Constraints: c}}
	}
	all := apiclient.NewRequest{PlacementWish: apiclient.PlacementWish{Constraints: bench.ConstraintSpec{Machines: []string{"plain"}}}}
	created, err := b.writer.CreateBatch(t.Context(), all, slices.Values([]apiclient.NewJob{
		at(bench.ConstraintSpec{}), at(bench.ConstraintSpec{Devices: []string{"gpu"}}), at(bench.ConstraintSpec{CacheDirs: []string{"go"}}),
	}))
	require.NoError(t, err)
	jobs, err := b.store.RequestJobs(t.Context(), created.ID)
	require.NoError(t, err)
	pool := bench.Pool{Target: linux, SizeClass: 2, Name: "main"}
	for i, want := range [][]string{{"plain"}, {"card"}, {"card"}} {
		require.Equal(t, bench.Place{Pool: pool, Set: want}.TaskQueue(), jobs[i].TaskQueue)
		require.Equal(t, i == 2, jobs[i].AffinityUntil != nil)
	}
	for name, set := range map[string]string{"plain": jobs[0].TaskQueue, "card": jobs[1].TaskQueue} {
		queues, err := b.store.CollectorTaskQueues(t.Context(), bench.Collector{Name: name, Target: linux, SizeClass: 2, Pool: "main"})
		require.NoError(t, err)
		require.Equal(t, []string{pool.TaskQueue(), set}, queues)
	}

	_, err = b.writer.CreateBatch(t.Context(), all, slices.Values([]apiclient.NewJob{
		at(bench.ConstraintSpec{Devices: []string{"fpga"}}), at(bench.ConstraintSpec{}), at(bench.ConstraintSpec{Memory: "8x"}),
	}))
	p := problemOf(t, err)
	require.Contains(t, p.Detail, "2 of 3 jobs cannot be taken")
	require.Contains(t, p.Error(), "no collector has device fpga")
	require.Contains(t, p.Error(), `memory "8x"`)
}

// A job that waits for a machine by its name: with it nothing is stuck, and without it
// people learn which one to start.
func TestAJobOfOneMachineNamesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registerAs(t, "vmx", func(*apiclient.Registration) {})
	b.registerAs(t, "other", func(*apiclient.Registration) {})
	r, err := b.writer.CreateRequest(t.Context(), command(bench.ConstraintSpec{Machines: []string{"vmx"}}))
	require.NoError(t, err)
	about := func() (string, string) {
		t.Helper()
		e, err := b.reader.ExplainRequest(t.Context(), string(r.ID))
		require.NoError(t, err)
		require.Equal(t, []string{"vmx"}, e.Next.Needs.Machines)
		for _, f := range e.Findings {
			if f.Subject == e.Next.TaskQueue {
				return f.Remedy, e.Next.Waits[0]
			}
		}
		return "", e.Next.Waits[0]
	}
	remedy, _ := about()
	require.Empty(t, remedy, "it lives")
	b.past(t, `delete from collector_config where name = 'vmx'`)
	remedy, waits := about()
	require.Equal(t, "start one named vmx, which alone can run it, with 'benchloom collector --name vmx'", remedy)
	require.Contains(t, waits, remedy)
}
