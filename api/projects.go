package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// ProjectRecord stores projects, their commits and the state of their sources.
type ProjectRecord interface {
	// ApplyProject creates a project or replaces its configuration.
	ApplyProject(ctx context.Context, p store.Project) (changed bool, err error)
	// ResumeForSuite ends the pause of a project whose former suite failed all test cases.
	ResumeForSuite(ctx context.Context, project, who string) (done store.Operation, resumed bool, err error)
	// RecentCommits lists at most limit commits, newest first.
	RecentCommits(ctx context.Context, project string, limit int) ([]store.CommitRequest, error)
	// SourceState is zero before the first look at the source.
	SourceState(ctx context.Context, project string) (store.SourceState, error)
}

// projectHandlers serve projects and their commits.
type projectHandlers struct {
	*base
	record    ProjectRecord
	watcher   Watcher
	workflows OperationWorkflows
}

func (s *projectHandlers) register() {
	s.registerCommits()
	handle(s.base, operation{id: "list-projects", method: http.MethodGet, path: "/projects", need: toRead, tag: "projects",
		summary: "List projects"}, s.listProjects)
	handle(s.base, operation{id: "get-project", method: http.MethodGet, path: "/projects/{project}", need: toRead, tag: "projects",
		summary: "Show a project"}, s.getProject)
	handle(s.base, operation{id: "apply-project", method: http.MethodPut, path: "/projects/{project}", need: toAdmin, scope: ofProject, audit: "project apply", tag: "projects", maxBody: s.MaxBody,
		summary: "Apply a project's configuration", description: "Creates the project or replaces its configuration. With dry_run it only lists the changes. A changed suite resumes a project that was paused because every test case failed."}, s.applyProject)
}

func (s *projectHandlers) listProjects(ctx context.Context, _ *none) (*body[apiclient.ProjectList], error) {
	stored, err := s.named.Projects(ctx)
	if err != nil {
		return nil, err
	}
	list := apiclient.ProjectList{Projects: make([]apiclient.Project, 0, len(stored))}
	for _, p := range stored {
		out, err := s.projectOf(ctx, p)
		if err != nil {
			return nil, err
		}
		list.Projects = append(list.Projects, out)
	}
	return answer(list, nil)
}

type projectPath struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
}

func (s *projectHandlers) getProject(ctx context.Context, in *projectPath) (*body[apiclient.Project], error) {
	p, err := s.project(ctx, in.Project, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	return answer(s.projectOf(ctx, p))
}

func (s *projectHandlers) projectOf(ctx context.Context, p store.Project) (apiclient.Project, error) {
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return apiclient.Project{}, fmt.Errorf("project %s: %w; apply a corrected configuration", p.Name, err)
	}
	out := apiclient.Project{Name: p.Name, Config: config, SuiteHash: p.SuiteHash, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}
	if out.SourceState, err = s.sourceOf(ctx, p.Name, config); err != nil {
		return out, err
	}
	if p.SuiteHash != "" {
		loaded, err := s.suites.Suite(ctx, p.SuiteHash)
		if err != nil {
			return out, fmt.Errorf("reading the suite of project %s: %w", p.Name, err)
		}
		out.Suite = loaded.Name()
	}
	return out, nil
}

type applyProject struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
	DryRun  bool   `query:"dry_run" doc:"Only list the changes."`
	Body    apiclient.Project
}

func (s *projectHandlers) applyProject(ctx context.Context, in *applyProject) (*body[apiclient.Applied], error) {
	wanted := in.Body
	if err := bench.CheckName("project", in.Project); err != nil {
		return nil, err
	}
	if err := mayChange(ctx, in.Project); err != nil {
		return nil, err
	}
	if wanted.Name != in.Project {
		return nil, invalid("the path names the project %q, the body %q; make them the same", in.Project, wanted.Name)
	}
	if err := wanted.Config.Check(); err != nil {
		return nil, fmt.Errorf("project %s: %w", in.Project, err)
	}
	if err := wanted.Config.Source.CheckSecrets(); err != nil {
		return nil, fmt.Errorf("project %s: %w", in.Project, err)
	}
	if _, err := profilingSettings(wanted.Config.Profiling); err != nil {
		return nil, err
	}
	if _, err := plan.SizePolicy(wanted.Config.Size); err != nil {
		return nil, fmt.Errorf("project %s: %w", in.Project, err)
	}
	if err := s.checkSuiteOf(ctx, wanted); err != nil {
		return nil, err
	}
	changes, err := s.changesOf(ctx, in.Project, wanted)
	if err != nil {
		return nil, err
	}
	applied := apiclient.Applied{Project: wanted, Changed: len(changes) > 0, DryRun: in.DryRun, Changes: changes}
	if in.DryRun {
		return answer(applied, nil)
	}
	if applied.Changed {
		config, err := json.Marshal(wanted.Config)
		if err != nil {
			return nil, fmt.Errorf("encoding the configuration of project %s: %w", in.Project, err)
		}
		before, err := s.sourceBefore(ctx, in.Project)
		if err != nil {
			return nil, err
		}
		if _, err := s.record.ApplyProject(ctx, store.Project{Name: in.Project, Config: config, SuiteHash: wanted.SuiteHash}); err != nil {
			return nil, err
		}
		s.watch(ctx, in.Project, before, wanted.Config.Source)
	}
	// Also if nothing has changed: an earlier call may have ended before this.
	done, resumed, err := s.record.ResumeForSuite(ctx, in.Project, caller(ctx).Owner)
	if err != nil {
		return nil, err
	}
	if resumed {
		applied.Changed, applied.Changes = true, append(applied.Changes, "the project is resumed: "+done.Result.Message)
		s.wakeQueue(ctx, s.workflows, in.Project)
	}
	stored, err := s.named.Project(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	applied.Project, err = s.projectOf(ctx, stored)
	return answer(applied, err)
}

// changesOf lists in words the changes of applying a project.
func (s *projectHandlers) changesOf(ctx context.Context, name string, wanted apiclient.Project) ([]string, error) {
	stored, err := s.named.Project(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		changes, err := s.changes(ctx, apiclient.Project{}, wanted)
		return append([]string{"the project is new"}, changes...), err
	}
	if err != nil {
		return nil, err
	}
	before := apiclient.Project{SuiteHash: stored.SuiteHash}
	if before.Config, err = bench.ReadProjectConfig(stored.Config); err != nil {
		before.Config = bench.ProjectConfig{}
		changes, failed := s.changes(ctx, before, wanted)
		return append([]string{"the configuration, which was not valid, is replaced: " + plain(err)}, changes...), failed
	}
	return s.changes(ctx, before, wanted)
}

// checkSuiteOf refuses a project whose suite is not stored or lacks its targets.
func (s *projectHandlers) checkSuiteOf(ctx context.Context, p apiclient.Project) error {
	if p.SuiteHash == "" {
		return nil
	}
	loaded, err := s.suites.Suite(ctx, p.SuiteHash)
	if errors.Is(err, store.ErrNotFound) {
		return problemf(http.StatusUnprocessableEntity, strings.TrimPrefix(apiclient.ProblemUnknownSuite, apiclient.ProblemPrefix), "the suite %.12s of project %s is not stored; upload it first with PUT /api/v1/suites/%s ('benchloom project apply' does both)", p.SuiteHash, p.Name, p.SuiteHash)
	}
	if err != nil {
		return fmt.Errorf("reading the suite of project %s: %w", p.Name, err)
	}
	if err := p.Config.CheckBenchmarkSets(targetsOf(p.Config, loaded), loaded.Benchmarks()); err != nil {
		return fmt.Errorf("project %s: %w", p.Name, err)
	}
	if len(p.Config.Targets) == 0 {
		return nil
	}
	if _, err := loaded.Expand(bench.Selection{Targets: p.Config.Targets}); err != nil {
		return fmt.Errorf("project %s: %w", p.Name, err)
	}
	return nil
}

// targetsOf returns the targets that a project measures by default.
func targetsOf(c bench.ProjectConfig, s *suite.Suite) []bench.Target {
	if len(c.Targets) > 0 {
		return c.Targets
	}
	return s.Targets()
}

// changes lists the differences, setting by setting.
func (s *projectHandlers) changes(ctx context.Context, before, after apiclient.Project) ([]string, error) {
	was, err := settings(before.Config)
	if err != nil {
		return nil, err
	}
	is, err := settings(after.Config)
	if err != nil {
		return nil, err
	}
	names := slices.Collect(maps.Keys(was))
	for name := range is {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	changes := []string{}
	for _, name := range names {
		old, had := was[name]
		now, has := is[name]
		switch {
		case !had:
			changes = append(changes, fmt.Sprintf("%s is set to %s", name, now))
		case !has:
			changes = append(changes, fmt.Sprintf("%s is no longer set (was %s)", name, old))
		case old != now:
			changes = append(changes, fmt.Sprintf("%s changes from %s to %s", name, old, now))
		}
	}
	if before.SuiteHash == after.SuiteHash {
		return changes, nil
	}
	old, err := s.suiteInWords(ctx, before.SuiteHash)
	if err != nil {
		return nil, err
	}
	now, err := s.suiteInWords(ctx, after.SuiteHash)
	if err != nil {
		return nil, err
	}
	return append(changes, fmt.Sprintf("the suite changes from %s to %s", old, now)), nil
}

func (s *projectHandlers) suiteInWords(ctx context.Context, hash string) (string, error) {
	if hash == "" {
		return "none", nil
	}
	loaded, err := s.suites.Suite(ctx, hash)
	if err != nil {
		return "", fmt.Errorf("reading a suite: %w", err)
	}
	return fmt.Sprintf("%s (%.12s)", loaded.Name(), hash), nil
}

// settings flattens a configuration to names such as queue.max_in_progress and
// values as JSON.
func settings(c bench.ProjectConfig) (map[string]string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding a project's configuration: %w", err)
	}
	out := make(map[string]string)
	return out, flatten(out, "", text)
}

func flatten(out map[string]string, name string, value json.RawMessage) error {
	if len(value) == 0 || value[0] != '{' {
		out[name] = string(value)
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return fmt.Errorf("reading a project's configuration: %w", err)
	}
	for field, v := range fields {
		if err := flatten(out, strings.TrimPrefix(name+"."+field, "."), v); err != nil {
			return err
		}
	}
	return nil
}

// ensureAdHoc creates the project of ad-hoc commands unless it exists.
func (s *projectHandlers) ensureAdHoc(ctx context.Context) error {
	_, err := s.named.Project(ctx, apiclient.AdHocProject)
	if errors.Is(err, store.ErrNotFound) {
		_, err = s.record.ApplyProject(ctx, store.Project{Name: apiclient.AdHocProject, Config: json.RawMessage(`{"description":"Single commands; see 'benchloom submit'."}`)})
	}
	if err != nil {
		return fmt.Errorf("creating the project of ad-hoc commands: %w", err)
	}
	return nil
}
