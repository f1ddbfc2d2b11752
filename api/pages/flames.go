package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/flame"
	"github.com/benchloom/benchloom/internal/report"
)

// flameAPI backs the pages of profiles of programs.
type flameAPI interface {
	CodeProfiles(ctx context.Context, project string, q apiclient.CodeProfileQuery) ([]apiclient.CodeProfile, error)
	CodeProfile(ctx context.Context, id bench.ProfileID) (apiclient.CodeProfile, error)
	CodeProfileFlames(ctx context.Context, id bench.ProfileID, q apiclient.FlameQuery) (apiclient.DrawnProfile, error)
	CodeProfileDifferenceFlames(ctx context.Context, a, b bench.ProfileID, q apiclient.FlameQuery) (apiclient.DrawnProfile, error)
}

// Parameters of the pages of profiles.
const (
	atParameter        = "at"
	tagParameter       = "tag"
	benchmarkParameter = "benchmark"
	profilerParameter  = "profiler"
)

func (p *Pages) flamePages() []page {
	return []page{
		{pattern: "/projects/{project}/profiles", parameters: []string{tagParameter, benchmarkParameter, "request"}, show: p.codeProfiles},
		{pattern: "/profiles/diff", parameters: []string{aParameter, bParameter, typeParameter, atParameter, searchParameter}, show: p.codeProfileDifference},
		{pattern: "/profiles/{profile}", parameters: []string{typeParameter, atParameter, searchParameter}, show: p.codeProfile},
	}
}

func (p *Pages) flameActions() []action {
	return []action{{"/projects/{project}/profiles", p.profileBoth}}
}

// codeDifference returns the address of the difference between two profiles.
func codeDifference(a, b bench.ProfileID) string {
	return "/profiles/diff?" + url.Values{aParameter: {string(a)}, bParameter: {string(b)}}.Encode()
}

// madeProfiles lists the profiles of a request, a job or a run.
type madeProfiles struct {
	Profiles []apiclient.CodeProfile
	// Difference leads to the difference between the two profiles of a request; empty: there are not two.
	Difference string
}

// madeBy lists the profiles that a query finds, that of the baseline first.
func (v *visit) madeBy(project, baseline string, q apiclient.CodeProfileQuery) (made madeProfiles, err error) {
	if made.Profiles, err = v.api.CodeProfiles(v.Context(), project, q); err != nil {
		return made, err
	}
	of := func(p apiclient.CodeProfile) int {
		if baseline != "" && p.Tag == baseline {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(made.Profiles, func(a, b apiclient.CodeProfile) int { return cmp.Compare(of(a), of(b)) })
	if len(made.Profiles) == 2 && made.Profiles[0].Tag != made.Profiles[1].Tag {
		made.Difference = codeDifference(made.Profiles[0].ID, made.Profiles[1].ID)
	}
	return made, nil
}

// codeProfilesView lists the profiles of a project.
type codeProfilesView struct {
	Project string
	// Tag, Benchmark and Request narrow the list.
	Tag, Benchmark, Request string
	Profiles                []apiclient.CodeProfile
	// Full is set if there may be older ones.
	Full bool
}

// listedProfiles bounds a list of profiles.
const listedProfiles = 200

func (p *Pages) codeProfiles(v *visit) (*view, error) {
	out := codeProfilesView{Project: v.PathValue("project"), Tag: v.get(tagParameter), Benchmark: v.get(benchmarkParameter), Request: v.get("request")}
	var err error
	out.Profiles, err = v.api.CodeProfiles(v.Context(), out.Project, apiclient.CodeProfileQuery{
		Tag: out.Tag, Benchmark: out.Benchmark, Request: bench.RequestID(out.Request), Limit: listedProfiles,
	})
	out.Full = len(out.Profiles) == listedProfiles
	return &view{
		template: "profiles", Title: "Profiles of " + out.Project, Crumbs: []link{projectLink(out.Project)}, Content: out,
		APIPath: "/api/v1/projects/" + segments(out.Project) + "/profiles", Command: quoted("benchloom", "profile", "list", out.Project),
	}, err
}

// flameView shows a profile, or the difference of two.
type flameView struct {
	// A is the profile before; nil: there is none to compare with. B is the drawn profile.
	A *apiclient.CodeProfile
	B apiclient.CodeProfile
	apiclient.DrawnProfile
	// Drawing is the flame graph.
	Drawing template.HTML
	// Search marks functions; Found is the share of samples with one of them, in words.
	Search, Found string
	// Type is the type of samples that is asked for; empty: that of the profile.
	Type string
	// Zoomed is the name of the frame that fills the whole width; empty: none. Lost is set if the
	// address asks for a frame that is not there.
	Zoomed string
	Lost   bool
	// Rows are the functions in words.
	Rows []functionRow
	// Swap leads to the difference the other way round, Downloads to the files.
	Swap      string
	Downloads []link
}

// functionRow is a function of the table.
type functionRow struct {
	Name, File string
	// Cells are the values in the order of the columns.
	Cells []string
	// Only says that one side lacks the function; empty: neither does.
	Only string
}

// codeProfile shows a profile as a flame graph and as a table.
func (p *Pages) codeProfile(v *visit) (*view, error) {
	id, err := bench.ParseProfileID(v.PathValue("profile"))
	if err != nil {
		return nil, badParameter("profile", v.PathValue("profile"), "it is the ID of a profile, p and ten letters or digits")
	}
	var out flameView
	if out.B, err = v.api.CodeProfile(v.Context(), id); err != nil {
		return nil, err
	}
	if out.DrawnProfile, err = v.api.CodeProfileFlames(v.Context(), id, out.asked(v)); err != nil {
		return nil, err
	}
	title := out.B.Tag + ": " + out.B.TestCase.String() + " by " + out.B.Profiler
	out.draw(v, title)
	for _, f := range out.Functions.Functions {
		unit, sum := out.Functions.Unit, out.Functions.Sum
		out.Rows = append(out.Rows, functionRow{Name: f.Name, File: f.File, Cells: []string{
			flame.Amount(f.Self, unit), ofAll(flame.Share(f.Self, sum)), flame.Amount(f.Total, unit), ofAll(flame.Share(f.Total, sum)),
		}})
	}
	for _, form := range []struct {
		form  apiclient.ProfileForm
		words string
	}{
		{apiclient.FormPprof, "pprof"}, {apiclient.FormFolded, "folded stacks"}, {apiclient.FormSpeedscope, "speedscope and Firefox Profiler"},
		{apiclient.FormHTML, "a page that stands alone"}, {apiclient.FormRaw, "as " + out.B.Profiler + " wrote it"},
	} {
		query := url.Values{"form": {string(form.form)}}
		if out.Type != "" && form.form != apiclient.FormPprof && form.form != apiclient.FormRaw {
			query.Set(typeParameter, out.Type)
		}
		out.Downloads = append(out.Downloads, link{"/api/v1/profiles/" + segments(id) + "/file?" + query.Encode(), form.words})
	}
	shown := &view{
		template: "flames", Title: title, Content: &out, Command: quoted("benchloom", "profile", "top", string(id)),
		APIPath: "/api/v1/profiles/" + segments(id) + "/functions",
	}
	shown.Crumbs = out.crumbs()
	return shown, nil
}

// codeProfileDifference shows how two profiles differ.
func (p *Pages) codeProfileDifference(v *visit) (*view, error) {
	var ids [2]bench.ProfileID
	for i, name := range []string{aParameter, bParameter} {
		var err error
		if ids[i], err = bench.ParseProfileID(v.get(name)); err != nil {
			return nil, badParameter(name, v.get(name), "it is the ID of a profile, p and ten letters or digits; choose two in the list of a project's profiles")
		}
	}
	a, err := v.api.CodeProfile(v.Context(), ids[0])
	if err != nil {
		return nil, err
	}
	out := flameView{A: &a, Swap: codeDifference(ids[1], ids[0])}
	if out.B, err = v.api.CodeProfile(v.Context(), ids[1]); err != nil {
		return nil, err
	}
	if out.DrawnProfile, err = v.api.CodeProfileDifferenceFlames(v.Context(), ids[0], ids[1], out.asked(v)); err != nil {
		return nil, err
	}
	title := out.B.Tag + " compared with " + a.Tag + ": " + out.B.TestCase.String() + " by " + out.B.Profiler
	out.draw(v, title)
	for _, f := range out.Changes.Functions {
		row := functionRow{Name: f.Name, File: f.File, Cells: []string{
			points(f.SelfShareB - f.SelfShareA), ofAll(f.SelfShareA), ofAll(f.SelfShareB), points(f.TotalShareB - f.TotalShareA),
		}}
		switch {
		case f.OnlyInA:
			row.Only = "gone"
		case f.OnlyInB:
			row.Only = "new"
		}
		out.Rows = append(out.Rows, row)
	}
	query := url.Values{aParameter: {string(ids[0])}, bParameter: {string(ids[1])}}
	address := "/api/v1/profiles/diff?" + query.Encode()
	query.Set("form", "html")
	if out.Type != "" {
		query.Set(typeParameter, out.Type)
	}
	out.Downloads = []link{{"/api/v1/profiles/diff?" + query.Encode(), "a page that stands alone"}}
	return &view{
		template: "flames", Title: title, Crumbs: out.crumbs(), Content: &out, APIPath: address,
		Command: quoted("benchloom", "profile", "diff", string(ids[0]), string(ids[1])),
	}, nil
}

func (f *flameView) asked(v *visit) apiclient.FlameQuery {
	f.Search, f.Type = v.get(searchParameter), v.get(typeParameter)
	return apiclient.FlameQuery{Type: f.Type, At: v.get(atParameter), Search: f.Search}
}

func (f *flameView) crumbs() []link {
	return []link{projectLink(f.B.Project), {"/projects/" + segments(f.B.Project) + "/profiles", "Profiles"}}
}

// draw draws the flame graph, whose frames lead to the page that zooms in on them.
func (f *flameView) draw(v *visit, title string) {
	query := v.URL.Query()
	d := flame.Drawing{ID: "flame", Title: title, Graph: f.Graph, Search: f.Search, Link: func(id string) string {
		query.Set(atParameter, id)
		return "?" + query.Encode() + "#flames"
	}}
	f.Drawing = template.HTML(d.SVG()) //nolint:gosec // it escapes what comes from outside
	f.Lost = v.get(atParameter) != "" && f.Graph.At == "" && (len(f.Graph.Boxes) == 0 || f.Graph.Boxes[0].ID != v.get(atParameter))
	for _, b := range f.Graph.Boxes {
		if f.Graph.At != "" && b.ID == f.Graph.At {
			f.Zoomed = b.Name
		}
	}
	if f.Search != "" {
		f.Found = ofAll(flame.Share(f.Matched, f.Graph.Sum))
	}
}

// Whole is the value of all samples, in words.
func (f *flameView) Whole() string { return flame.Amount(f.Graph.Sum, f.Graph.Unit) }

// Before is the value of all samples of the profile before, in words.
func (f *flameView) Before() string { return flame.Amount(f.Graph.BeforeSum, f.Graph.Unit) }

func ofAll(share float64) string { return fmt.Sprintf("%.1f\u00a0%%", 100*share) }

// points writes a difference of shares with its sign, unless it is rounded to nothing.
func points(difference float64) string {
	if math.Abs(difference) < .0005 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", 100*difference)
}

// offerProfiling offers profiles of both sides of an opened row.
func (c *compareView) offerProfiling(p *Pages, v *visit, o *openedRow, profilers []string) error {
	if len(profilers) == 0 {
		return nil
	}
	tc := testCase(o.TestCase)
	target := tc.Benchmark + "/" + tc.Profile + "/" + tc.Scenario + "/" + tc.Backend + "/" + string(tc.Target)
	offered, err := p.offer(v, rightToWrite, c.Project, act{
		Name: "profile", Title: "Profile both", Address: "/projects/" + segments(c.Project) + "/profiles",
		About:  "Makes an ad-hoc request that runs this test case of both artifacts once under a profiler, where that is installed. Its flame graphs, and what differs between them, are on the page of the request. A profile explains a measurement and is none.",
		Fields: []field{{aParameter, c.A.Tag}, {bParameter, c.B.Tag}, {rowParameter, o.ID}},
		Pick:   &pick{profilerParameter, "Profiler", profilers}, Command: quoted("benchloom", "profile", c.Project, c.B.Tag, target, "--with", profilers[0], "--vs", c.A.Tag),
	})
	o.Profile = &offered
	return err
}

// profileBoth makes the request that an opened row offers.
func (p *Pages) profileBoth(v *visit) (string, error) {
	key, err := report.ParseRowID(v.PostFormValue(rowParameter))
	if err != nil {
		return "", badParameter(rowParameter, v.PostFormValue(rowParameter), "open a row of the comparison, and send its form")
	}
	wanted := apiclient.NewRequest{
		Project: v.PathValue("project"), Type: bench.AdHoc, Tag: v.PostFormValue(bParameter), Versus: v.PostFormValue(aParameter), Profiler: v.PostFormValue(profilerParameter),
		IdempotencyKey: v.PostFormValue("key"), Reason: v.sent().Reason, Selection: selectionOf(testCase(key.TestCase)),
	}
	if wanted.Profiler == "" {
		return "", badParameter(profilerParameter, "", "choose one in the form of the row")
	}
	made, err := v.api.CreateRequest(v.Context(), wanted)
	return "/requests/" + segments(made.ID) + "#profiles", err
}

// sampledBy says what a profile holds: the sum of the samples of its last type, which is the one that profilers mean.
func sampledBy(p apiclient.CodeProfile) string {
	if len(p.SampleTypes) == 0 {
		return ""
	}
	t := p.SampleTypes[len(p.SampleTypes)-1]
	return t.Type + " " + flame.Amount(t.Total, t.Unit)
}
