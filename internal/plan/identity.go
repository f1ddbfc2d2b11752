package plan

import "github.com/benchloom/benchloom/internal/bench"

// keyOf gives the key of a job: a hash of all that makes it this job and no other.
//
// The owner is the request whose own job it is; empty: all who need it share it. The pool
// is named of a job that is meant for one in particular: the same test cases on another
// pool are another job then. A command has no pool of its own, and a build, which all who
// need it share, neither owner nor pool nor size class.
func keyOf(j bench.Job, owner bench.RequestID, pool string) bench.JobKey {
	id := bench.JobIdentity{
		Request: owner, Project: j.Project, Tag: j.Tag, Versus: j.Versus, Target: j.Target, Backend: j.Backend, Profile: j.Profile, Kind: j.Kind,
		Suite: j.SuiteHash, TestCases: j.TestCases, SizeClass: j.SizeClass, Pool: pool, Line: j.Line, Generation: j.Generation,
	}
	switch {
	case j.Build != nil:
		id.Request, id.Tag, id.SizeClass, id.Pool, id.Suite = "", "", 0, "", string(j.Build.Key)
	case j.Kind == bench.KindCommand:
		id.Pool = ""
	}
	return id.Key()
}

// key gives the key of a job that is planned for the request. Ad-hoc jobs are their
// request's own, for two people's equal commands are two jobs, and so are those that
// measure in turns. Meant for one pool are the jobs of a parent, which is measured where
// its child is, and those of benchmark sets.
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

// Later gives the job of a later generation, 1 or above, that takes the place of a former
// one. It belongs to the request that asks for it, and to the pool where the former one
// belongs: what the same test cases lack on two pools of one size class stays two jobs.
func Later(j bench.Job, request bench.RequestID, generation int) bench.Job {
	j.Generation = generation
	j.Key = keyOf(j, request, j.Pool)
	return j
}
