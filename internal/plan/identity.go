package plan

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// keyOf returns the key of a job: a hash of everything that identifies it.
//
// owner is the request that the job belongs to; empty: requests share it. pool is set for
// a job bound to one pool: the same test cases on another pool are another job then. A
// command has no pool, and a build, which requests share, neither owner nor pool nor size
// class. Two equal nodes of a graph are two jobs, as two equal lines of a batch are.
func keyOf(j bench.Job, owner bench.RequestID, pool string) bench.JobKey {
	id := bench.JobIdentity{
		Request: owner, Project: j.Project, Tag: j.Tag, Versus: j.Versus, Target: j.Target, Backend: j.Backend, Profile: j.Profile, Kind: j.Kind,
		Suite: j.SuiteHash, TestCases: j.TestCases, SizeClass: j.SizeClass, Pool: pool, Line: j.Line, Profiler: j.Profiler, Chunk: j.Chunk, Generation: j.Generation,
	}
	switch {
	case j.Build != nil:
		id.Request, id.Tag, id.SizeClass, id.Pool, id.Suite = "", "", 0, "", string(j.Build.Key)
	case j.Kind == bench.KindCommand:
		id.Pool = ""
	}
	if j.Build == nil && j.Line == 0 {
		id.Node = j.Name
	}
	return id.Key()
}

// key returns the key of a job planned for the request. Ad-hoc jobs belong to their
// request, for equal commands of two people are two jobs, and so do jobs that measure in
// turns. Jobs of a parent, which is measured where its child is, and jobs of benchmark
// sets are bound to one pool.
func (f Facts) key(j bench.Job) bench.JobKey {
	if j.Generation > 0 {
		return Later(j, f.Request.ID, j.Generation).Key
	}
	var owner bench.RequestID
	if !f.Request.Type.Tracked() || j.Versus != "" {
		owner = f.Request.ID
	}
	pool := ""
	if j.Tag != f.Request.Tag || len(f.Config.BenchmarkSetsOf(j.Target)) > 0 {
		pool = j.Pool
	}
	return keyOf(j, owner, pool)
}

// Later returns the job of a later generation, 1 or above, that replaces an earlier one.
// It belongs to the request that asks for it and to the earlier job's pool: what the same
// test cases lack on two pools of one size class stays two jobs.
func Later(j bench.Job, request bench.RequestID, generation int) bench.Job {
	j.Generation = generation
	j.Key = keyOf(j, request, j.Pool)
	return j
}

// ServiceKey returns the key of a node that has no jobs.
func ServiceKey(request bench.RequestID, n graph.Node, generation int) bench.JobKey {
	return keyOf(bench.Job{Generation: generation, Work: bench.Work{Name: n.Name, SuiteHash: n.Job.Hash()}}, request, "")
}
