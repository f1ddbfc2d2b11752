package apiclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// DefinitionsPush gives a project the definitions of a folder.
type DefinitionsPush struct {
	Act
	Files  map[string]string `json:"files" doc:"Texts of branches.yaml, graphs/NAME.yaml and jobs/NAME.yaml, by these names." maxProperties:"1000"`
	Source string            `json:"source,omitempty" maxLength:"500" example:"https://example.com/definitions.git@4f2a9c1" doc:"Where they are from, as branches.yaml names it: branches that use definitions of this place use these."`
}

// DefinitionsPushed is the result of a push.
type DefinitionsPushed struct {
	Operation
	Hash   string       `json:"hash" doc:"Content hash of the definitions."`
	Graphs []TriedGraph `json:"graphs" doc:"What each template makes of each branch, with defaults and examples."`
}

// TriedGraph describes the graph that a template makes of a branch.
type TriedGraph struct {
	Template  string `json:"template"`
	Branch    string `json:"branch"`
	Nodes     int    `json:"nodes"`
	Edges     int    `json:"edges"`
	GraphHash string `json:"graph_hash"`
}

// PushedDefinitions are definitions that a project has.
type PushedDefinitions struct {
	Hash     string    `json:"hash" doc:"Content hash."`
	Source   string    `json:"source,omitempty" doc:"Where they are from; absent: nobody has said."`
	PushedBy string    `json:"pushed_by"`
	PushedAt time.Time `json:"pushed_at"`
	Current  bool      `json:"current,omitempty" doc:"The newest of the project, which count."`
}

// DefinitionsList is a page of a project's definitions, the newest first.
type DefinitionsList struct {
	Definitions []PushedDefinitions `json:"definitions"`
	Next        string              `json:"next,omitempty" doc:"Cursor of the next page."`
}

// GraphTemplate describes a stored graph template.
type GraphTemplate struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Parameters  []TemplateParameter `json:"parameters"`
	Branches    []string            `json:"branches,omitempty" doc:"Those that it is for, as names or patterns; absent: all."`
}

// TemplateParameter describes a parameter of a template.
type TemplateParameter struct {
	Name        string   `json:"name"`
	Type        string   `json:"type" enum:"string,int,bool,list"`
	Description string   `json:"description,omitempty"`
	Default     any      `json:"default,omitempty" doc:"Absent: a value must be given."`
	Example     any      `json:"example,omitempty"`
	OneOf       []string `json:"one_of,omitempty"`
	Minimum     *int64   `json:"minimum,omitempty"`
	Maximum     *int64   `json:"maximum,omitempty"`
}

// GraphTemplates are the templates of a project.
type GraphTemplates struct {
	Definitions PushedDefinitions `json:"definitions"`
	Templates   []GraphTemplate   `json:"templates"`
}

// BranchRule says what a branch sets, allows and uses.
type BranchRule struct {
	Name        string         `json:"name" doc:"The branch, or the pattern that matches it."`
	Protected   bool           `json:"protected"`
	Customise   bool           `json:"customise"`
	Definitions string         `json:"definitions,omitempty" doc:"The place whose definitions it uses instead of the project's."`
	Switches    map[string]any `json:"switches,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

// RenderedTemplate is the graph that a template makes.
type RenderedTemplate struct {
	Template    string          `json:"template"`
	Definitions string          `json:"definitions" doc:"Content hash of the definitions that were used."`
	Branch      string          `json:"branch"`
	Rule        BranchRule      `json:"rule"`
	Parameters  map[string]any  `json:"parameters,omitempty" doc:"Those that count, given or not."`
	GraphHash   string          `json:"graph_hash"`
	Graph       json.RawMessage `json:"graph" doc:"Nodes with their jobs, and edges."`
}

// TemplateQuery says how a template is expanded; empty values stand for defaults.
type TemplateQuery struct {
	// Definitions is a content hash, or its first seven digits or more.
	Definitions string
	Branch      string
	// Parameters are values as name=value; commas separate the entries of lists.
	Parameters []string
}

func (q TemplateQuery) values() url.Values {
	out := url.Values{}
	set(out, "definitions", q.Definitions)
	set(out, "branch", q.Branch)
	for _, p := range q.Parameters {
		out.Add("param", p)
	}
	return out
}

// PushDefinitions gives a project definitions, or only checks them.
func (c *Client) PushDefinitions(ctx context.Context, project string, in DefinitionsPush, dryRun bool) (out DefinitionsPushed, err error) {
	query := url.Values{}
	if dryRun {
		query.Set("dry_run", "true")
	}
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("projects", project, "definitions"), query: query, in: in, out: &out})
	return out, err
}

// Definitions lists the definitions that a project was given, the newest first; a limit of 0
// stands for the API's default.
func (c *Client) Definitions(ctx context.Context, project string, limit int, cursor string) (DefinitionsList, error) {
	query := url.Values{}
	set(query, "cursor", cursor)
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return get[DefinitionsList](ctx, c, v1("projects", project, "definitions"), query)
}

// Templates lists the graph templates of a project, or those of definitions that it was
// given earlier.
func (c *Client) Templates(ctx context.Context, project, definitions string) (GraphTemplates, error) {
	return get[GraphTemplates](ctx, c, v1("projects", project, "templates"), TemplateQuery{Definitions: definitions}.values())
}

// Template returns the graph that a stored template makes.
func (c *Client) Template(ctx context.Context, project, template string, q TemplateQuery) (RenderedTemplate, error) {
	return get[RenderedTemplate](ctx, c, v1("projects", project, "templates", template), q.values())
}
