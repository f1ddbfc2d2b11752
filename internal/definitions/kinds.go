package definitions

import (
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// body is a job's definition as it is written: a kind with its keys.
type body struct {
	kind  graph.Kind
	at    position
	value *value
}

// kindKeys lists the names of all kinds, which are the keys that define a job.
func kindKeys() []string {
	keys := make([]string, len(graph.Kinds()))
	for i, k := range graph.Kinds() {
		keys[i] = string(k)
	}
	return keys
}

// body returns the one job that an object defines; nil if none.
func (o object) body() *body {
	var found *body
	for _, k := range graph.Kinds() {
		p, given := o.fields[string(k)]
		if !given {
			continue
		}
		if found != nil {
			o.d.add(p.at, "a second kind of job; %q is the first: write one", found.kind)
			continue
		}
		found = &body{k, p.at, p.value}
	}
	return found
}

// job reads a job; zero if it has problems or still has variables.
func (d *decoder) job(b *body) graph.Job {
	before := len(d.list)
	d.waits = false
	definition := d.definition(b)
	if d.waits || d.full() || len(d.list) > before {
		return graph.Job{}
	}
	j, err := graph.NewJob(definition)
	if err != nil {
		d.add(b.at, "%v", err)
		return graph.Job{}
	}
	return j
}

func (d *decoder) definition(b *body) graph.Definition {
	switch b.kind {
	case graph.KindBenchmark:
		return d.benchmark(b.value)
	case graph.KindBuild:
		return d.build(b.value)
	case graph.KindCommand:
		return d.command(b.value)
	case graph.KindProfile:
		return d.profile(b.value)
	case graph.KindCompare:
		o := d.object(b.value, "tag", "baseline", "fail_on_regression")
		o.need("tag")
		return graph.Compare{Tag: o.text("tag"), Baseline: o.text("baseline"), FailOnRegression: o.truth("fail_on_regression")}
	case graph.KindNotify:
		o := d.object(b.value, "tag", "text")
		o.need("tag")
		return graph.Notify{Tag: o.text("tag"), Text: o.text("text")}
	case graph.KindSignOff:
		o := d.object(b.value, "question", "accounts", "limit")
		o.need("question", "limit")
		return graph.SignOff{Question: o.text("question"), Accounts: o.texts("accounts"), LimitSeconds: o.seconds("limit")}
	}
	return nil
}

func (d *decoder) benchmark(v *value) graph.Definition {
	o := d.object(v, "tag", "versus", "target", "suite", "set", "benchmarks", "profiles", "scenarios", "backends", "iterations", "constraints", "chunks")
	o.need("tag", "target")
	b := graph.Benchmark{
		Tag: o.text("tag"), Versus: o.text("versus"), Target: bench.Target(o.text("target")), Suite: o.text("suite"),
		Selection: bench.Selection{
			Set: o.text("set"), Benchmarks: o.texts("benchmarks"), Profiles: o.texts("profiles"), Scenarios: o.texts("scenarios"), Backends: o.texts("backends"),
		},
		Iterations: o.integer("iterations"), Constraints: o.constraints(),
	}
	if c, given := o.get("chunks"); given {
		chunks := d.object(c, "min", "max")
		chunks.need("min", "max")
		b.Chunks = &graph.Chunks{Min: chunks.integer("min"), Max: chunks.integer("max")}
	}
	return b
}

func (d *decoder) build(v *value) graph.Definition {
	o := d.object(v, "tag", "target", "repository", "command", "env", "pass_env", "output", "timeout", "constraints")
	o.need("tag", "target", "repository", "command")
	b := graph.Build{
		Tag: o.text("tag"), Target: bench.Target(o.text("target")), Constraints: o.constraints(),
		BuildRecipe: bench.BuildRecipe{
			Repository: o.text("repository"), Command: o.arguments("command"), PassEnv: o.texts("pass_env"), Output: o.text("output"), TimeoutSeconds: o.seconds("timeout"),
		},
	}
	env := o.named("env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		b.Env = append(b.Env, name+"="+env[name])
	}
	return b
}

func (d *decoder) command(v *value) graph.Definition {
	o := d.object(v, "target", "checkouts", "steps", "success", "failure", "retry", "uploads", "constraints")
	o.need("target", "steps")
	c := graph.Command{
		Target: bench.Target(o.text("target")), Uploads: o.texts("uploads"), Constraints: o.constraints(),
		Rules: graph.Rules{Success: o.integers("success"), Failure: o.texts("failure")},
	}
	for _, item := range o.items("checkouts") {
		one := d.object(item, "repository", "revision", "path")
		one.need("repository", "revision")
		c.Checkouts = append(c.Checkouts, graph.Checkout{Repository: one.text("repository"), Revision: one.text("revision"), Path: one.text("path")})
	}
	for _, item := range o.items("steps") {
		one := d.object(item, "run", "env", "dir", "timeout")
		one.need("run")
		c.Steps = append(c.Steps, graph.Step{Argv: one.arguments("run"), Env: one.named("env"), Dir: one.text("dir"), TimeoutSeconds: one.seconds("timeout")})
	}
	if r, given := o.get("retry"); given {
		retry := d.object(r, "codes", "patterns", "times")
		retry.need("times")
		c.Rules.RetryCodes, c.Rules.RetryPatterns, c.Rules.Retries = retry.integers("codes"), retry.texts("patterns"), retry.integer("times")
	}
	return c
}

// items returns the entries of a list.
func (o object) items(key string) []*value {
	v, given := o.get(key)
	if !given {
		return nil
	}
	if v.kind != listing {
		o.d.mistyped(v, "a list")
		return nil
	}
	return v.list
}

func (d *decoder) profile(v *value) graph.Definition {
	o := d.object(v, "tag", "target", "suite", "benchmark", "profile", "scenario", "backend", "profiler", "constraints")
	o.need("tag", "target", "benchmark", "profiler")
	target := bench.Target(o.text("target"))
	return graph.Profile{
		Tag: o.text("tag"), Target: target, Suite: o.text("suite"), Profiler: o.text("profiler"), Constraints: o.constraints(),
		TestCase: bench.TestCase{Benchmark: o.text("benchmark"), Profile: o.text("profile"), Scenario: o.text("scenario"), Backend: o.text("backend"), Target: target},
	}
}

// constraints reads the constraints on machines; nil if none.
func (o object) constraints() *bench.Constraints {
	v, given := o.get("constraints")
	if !given {
		return nil
	}
	c := o.d.object(v, "machines", "groups", "type", "devices", "labels", "memory", "cpus", "cache_dirs")
	spec := bench.ConstraintSpec{
		Machines: c.texts("machines"), Groups: c.texts("groups"), Type: c.text("type"), Devices: c.texts("devices"), Labels: c.named("labels"),
		Memory: c.text("memory"), CPUs: c.integer("cpus"), CacheDirs: c.texts("cache_dirs"),
	}
	if v.holes {
		return nil
	}
	read, err := spec.Read()
	if err != nil {
		o.d.add(v.at, "%v", err)
	}
	return &read
}
