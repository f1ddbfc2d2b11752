package plan

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// Artifact is an artifact of the provider build.
type Artifact struct {
	Tag    string
	Target bench.Target
	Recipe bench.BuildRecipe
}

// Artifacts lists, each once, the artifacts of the provider build that measuring jobs
// need; none for a command.
func (f Facts) Artifacts(measuring []bench.PlannedJob) ([]Artifact, error) {
	if f.Suite == nil {
		return nil, nil
	}
	source := f.Suite.Artifact()
	type artifact struct {
		tag    string
		target bench.Target
	}
	seen := make(map[artifact]bool)
	var artifacts []Artifact
	for _, j := range measuring {
		for _, tag := range []string{j.Tag, j.Versus} {
			provider, parameters := f.Config.Artifacts.For(tag, source.Provider, source.Parameters)
			if tag == j.Versus && j.IsCanary() {
				continue // the same artifact
			}
			if tag == "" || provider != bench.BuildProvider || seen[artifact{tag, j.Target}] {
				continue
			}
			seen[artifact{tag, j.Target}] = true
			recipe, err := bench.ParseBuildRecipe(parameters, tag, j.Target)
			if err != nil {
				return nil, fmt.Errorf("how %s is built: %w", tag, err)
			}
			artifacts = append(artifacts, Artifact{Tag: tag, Target: j.Target, Recipe: recipe})
		}
	}
	return artifacts, nil
}

// Build plans the job that builds an artifact. All requests that need the build share it,
// so only the project's constraints apply. The error is a [placement.Unplaceable].
func (f Facts) Build(spec bench.BuildSpec, generation int) (bench.PlannedJob, error) {
	constraints, err := f.narrowed(nil)
	if err != nil {
		return bench.PlannedJob{}, err
	}
	needs := Needs{Target: spec.Target, Constraints: &constraints}.Requirements().On(f.pin())
	at, err := placement.Choose(f.Fleet, needs)
	if err != nil {
		return bench.PlannedJob{}, err
	}
	j, err := bench.NewBuildJob(f.Request.Project, spec, generation)
	if err != nil {
		return bench.PlannedJob{}, err
	}
	return f.job(j, site{at, constraints}), nil
}
