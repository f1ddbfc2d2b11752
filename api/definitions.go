package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/store"
)

// DefinitionsRecord stores the definitions of projects.
type DefinitionsRecord interface {
	// PushDefinitions gives a project definitions that were checked.
	PushDefinitions(ctx context.Context, project string, d store.Definitions, act store.Act) (store.Operation, error)
	// DefinitionsPushes lists at most limit pushes, the newest first, before a row if that is not 0.
	DefinitionsPushes(ctx context.Context, project string, before int64, limit int) ([]store.DefinitionsPush, error)
	// PushedDefinitions returns the newest push whose hash begins with hash and, unless it is empty,
	// whose source is source. store.ErrNotFound: there is none.
	PushedDefinitions(ctx context.Context, project, hash, source string) (store.DefinitionsPush, error)
	// DefinitionsFiles returns store.ErrNotFound for an unknown hash.
	DefinitionsFiles(ctx context.Context, hash string) (map[string]string, error)
}

// keptFolders bounds the folders that are kept as they were read.
const keptFolders = 32

// maxDefinitions bounds a push in bytes: a folder, with its text escaped.
const maxDefinitions = 20 << 20

type definitionHandlers struct {
	*base
	record DefinitionsRecord
	// folders holds the folders used last, by hash. They never change.
	folders *ttlcache.Cache[string, *definitions.Folder]
}

func newDefinitionHandlers(s *base, record DefinitionsRecord) *definitionHandlers {
	return &definitionHandlers{base: s, record: record, folders: ttlcache.New(ttlcache.WithCapacity[string, *definitions.Folder](keptFolders))}
}

func (s *definitionHandlers) register() {
	handle(s.base, operation{id: "push-definitions", method: http.MethodPost, path: "/projects/{project}/definitions", need: toWrite, scope: ofProject, tag: "graphs", maxBody: maxDefinitions, slots: suiteSlots,
		summary: "Give a project graph templates", description: "Each template is expanded on each branch first; problems are told with file, line and column, and nothing is stored. The same definitions again change nothing."}, s.push)
	handle(s.base, operation{id: "list-definitions", method: http.MethodGet, path: "/projects/{project}/definitions", need: toRead, tag: "graphs",
		summary: "List the definitions that a project was given, newest first"}, s.list)
	handle(s.base, operation{id: "list-templates", method: http.MethodGet, path: "/projects/{project}/templates", need: toRead, tag: "graphs",
		summary: "List the graph templates of a project: what might run"}, s.templates)
	handle(s.base, operation{id: "render-template", method: http.MethodGet, path: "/projects/{project}/templates/{template}", need: toRead, tag: "graphs", slots: suiteSlots,
		summary: "Show the graph that a stored template makes", description: "Nothing is run, and no checkout is needed. A branch that uses definitions of another place gets those that were pushed from there."}, s.render)
}

type pushDefinitions struct {
	Project string `path:"project" doc:"Name of the project."`
	DryRun  bool   `query:"dry_run" doc:"Only check them, and tell what they make."`
	Body    apiclient.DefinitionsPush
}

func (s *definitionHandlers) push(ctx context.Context, in *pushDefinitions) (*body[apiclient.DefinitionsPushed], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	folder, err := definitions.FromFiles(in.Body.Files)
	if err != nil {
		return nil, err
	}
	tried, err := folder.Check(ctx)
	if err != nil {
		return nil, err
	}
	who.DryRun = in.DryRun
	done, err := s.record.PushDefinitions(ctx, in.Project, store.Definitions{Hash: folder.Hash(), Files: folder.Files(), Source: strings.TrimSpace(in.Body.Source)}, who)
	if err != nil {
		return nil, err
	}
	out := apiclient.DefinitionsPushed{Operation: operationOf(done), Hash: folder.Hash(), Graphs: make([]apiclient.TriedGraph, len(tried))}
	for i, t := range tried {
		out.Graphs[i] = apiclient.TriedGraph{Template: t.Template, Branch: t.Branch, Nodes: t.Nodes, Edges: t.Edges, GraphHash: t.Hash}
	}
	return answer(out, nil)
}

type listDefinitions struct {
	Project string `path:"project" doc:"Name of the project."`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor  string `query:"cursor" doc:"The value of next from the page before."`
}

func (s *definitionHandlers) list(ctx context.Context, in *listDefinitions) (*body[apiclient.DefinitionsList], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	before, err := rowCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	pushes, err := s.record.DefinitionsPushes(ctx, in.Project, before, in.Limit)
	if err != nil {
		return nil, err
	}
	out := apiclient.DefinitionsList{Definitions: make([]apiclient.PushedDefinitions, len(pushes))}
	for i, p := range pushes {
		out.Definitions[i] = pushedOf(p)
	}
	if len(pushes) == in.Limit {
		out.Next = strconv.FormatInt(pushes[len(pushes)-1].Row, 10)
	}
	return answer(out, nil)
}

// rowCursor reads the cursor of a list of rows; empty: 0.
func rowCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	row, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || row <= 0 {
		return 0, invalid("cursor is %.40q; give what the page before named as next, or nothing for the first page", cursor)
	}
	return row, nil
}

func pushedOf(p store.DefinitionsPush) apiclient.PushedDefinitions {
	return apiclient.PushedDefinitions{Hash: p.Hash, Source: p.Source, PushedBy: p.By, PushedAt: p.At, Current: p.Current}
}

type listTemplates struct {
	Project     string `path:"project" doc:"Name of the project."`
	Definitions string `query:"definitions" doc:"Content hash of definitions that the project was given, or its first seven digits or more; the newest if left out."`
}

func (s *definitionHandlers) templates(ctx context.Context, in *listTemplates) (*body[apiclient.GraphTemplates], error) {
	push, folder, err := s.pushed(ctx, in.Project, in.Definitions)
	if err != nil {
		return nil, err
	}
	out := apiclient.GraphTemplates{Definitions: pushedOf(push), Templates: make([]apiclient.GraphTemplate, 0)}
	for _, t := range folder.Templates() {
		one := apiclient.GraphTemplate{Name: t.Name, Description: t.Description, Branches: t.Branches, Parameters: make([]apiclient.TemplateParameter, len(t.Parameters))}
		for i, p := range t.Parameters {
			one.Parameters[i] = apiclient.TemplateParameter{
				Name: p.Name, Type: string(p.Type), Description: p.Description, Default: p.Default, Example: p.Example, OneOf: p.OneOf, Minimum: p.Minimum, Maximum: p.Maximum,
			}
		}
		out.Templates = append(out.Templates, one)
	}
	return answer(out, nil)
}

type renderTemplate struct {
	Project     string   `path:"project" doc:"Name of the project."`
	Template    string   `path:"template" doc:"Name of the template."`
	Definitions string   `query:"definitions" doc:"Content hash of definitions that the project was given, or its first seven digits or more; the newest if left out."`
	Branch      string   `query:"branch" default:"main" doc:"Branch for which the graph is made."`
	Param       []string `query:"param,explode" doc:"Value of a parameter, as name=value; repeatable. Entries of a list stand between commas."`
}

func (s *definitionHandlers) render(ctx context.Context, in *renderTemplate) (*body[apiclient.RenderedTemplate], error) {
	e, err := s.expand(ctx, in.Project, in.Definitions, definitions.Call{Template: in.Template, Branch: in.Branch}, in.Param)
	if err != nil {
		return nil, err
	}
	rule := e.Rule
	return answer(apiclient.RenderedTemplate{
		Template: e.Template, Definitions: e.Definitions, Branch: e.Branch, Parameters: e.Parameters, GraphHash: e.Hash, Graph: json.RawMessage(e.Graph.Canonical()),
		Rule: apiclient.BranchRule{
			Name: rule.Name, Protected: rule.Protected, Customise: rule.Customise, Definitions: rule.Definitions, Switches: rule.Switches, Parameters: rule.Parameters,
		},
	}, nil)
}

// expand makes the graph of a call from the newest definitions of a project, or from those
// whose hash begins with hash. A branch that uses definitions of another place gets those,
// unless a hash is given. Parameters are written as name=value.
func (s *definitionHandlers) expand(ctx context.Context, project, hash string, call definitions.Call, parameters []string) (*definitions.Expansion, error) {
	_, folder, err := s.pushed(ctx, project, hash)
	if err != nil {
		return nil, err
	}
	rule, err := folder.Rule(call.Branch)
	if err != nil {
		return nil, err
	}
	if rule.Definitions != "" && hash == "" {
		if folder, err = s.elsewhere(ctx, project, call.Branch, rule.Definitions); err != nil {
			return nil, err
		}
	}
	if call.Parameters, err = folder.ParseParameters(call.Template, parameters); err != nil {
		return nil, err
	}
	e, err := folder.Expand(ctx, call)
	if err == nil {
		e.Rule = rule
	}
	return e, err
}

// elsewhere returns the definitions that were pushed from another place, which a branch uses.
func (s *definitionHandlers) elsewhere(ctx context.Context, project, branch, source string) (*definitions.Folder, error) {
	push, err := s.record.PushedDefinitions(ctx, project, "", source)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusConflict, "not-pushed", "branch %s uses the definitions of %s, which project %s was not given; push them with 'benchloom definitions push DIR %s --source %s'", branch, source, project, project, source)
	}
	if err != nil {
		return nil, err
	}
	return s.folder(ctx, push.Hash)
}

// shortestHash is the least number of digits of an abbreviated hash.
const shortestHash = 7

// pushed returns the newest definitions of a project, or those whose hash begins with hash.
func (s *definitionHandlers) pushed(ctx context.Context, project, hash string) (store.DefinitionsPush, *definitions.Folder, error) {
	if _, err := s.project(ctx, project, http.StatusNotFound); err != nil {
		return store.DefinitionsPush{}, nil, err
	}
	var push store.DefinitionsPush
	err := store.ErrNotFound
	if hash == "" || len(hash) >= shortestHash {
		push, err = s.record.PushedDefinitions(ctx, project, hash, "")
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && hash != "":
		return push, nil, problemf(http.StatusNotFound, "unknown-definitions", "project %s was not given the definitions %.80q; 'benchloom definitions list %s' lists those that it was given", project, hash, project)
	case errors.Is(err, store.ErrNotFound):
		return push, nil, problemf(http.StatusNotFound, "no-definitions", "project %s has no graph templates; give it some with 'benchloom definitions push DIR %s'", project, project)
	case err != nil:
		return push, nil, err
	}
	folder, err := s.folder(ctx, push.Hash)
	return push, folder, err
}

// folder reads stored definitions, unless they were read lately.
func (s *definitionHandlers) folder(ctx context.Context, hash string) (*definitions.Folder, error) {
	if known := s.folders.Get(hash); known != nil {
		return known.Value(), nil
	}
	files, err := s.record.DefinitionsFiles(ctx, hash)
	if err != nil {
		return nil, err
	}
	folder, err := definitions.FromFiles(files)
	if err != nil {
		// They were checked when they were pushed: an older version accepted what this one refuses.
		return nil, fmt.Errorf("reading the stored definitions %.12s: %w", hash, err)
	}
	s.folders.Set(hash, folder, ttlcache.NoTTL)
	return folder, nil
}
