package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// compareAPI backs the comparison page, and requests more measurements.
type compareAPI interface {
	// Compare takes the baseline of B if A is empty.
	Compare(ctx context.Context, q apiclient.CompareQuery) (apiclient.Comparison, error)
	CompareText(ctx context.Context, q apiclient.CompareQuery, format string) (string, error)
	ComparedValues(ctx context.Context, project, a, b, row string) (apiclient.ComparedValues, error)
	ComparedMachine(ctx context.Context, project, a, b, row string) (apiclient.ComparedMachine, error)
	EarlierValues(ctx context.Context, project, b string, rows []string) (apiclient.EarlierValues, error)
	CreateRequest(ctx context.Context, r apiclient.NewRequest) (apiclient.Request, error)
}

// Parameters of the comparison page.
const (
	aParameter      = "a"
	bParameter      = "b"
	metricParameter = "metric"
	colsParameter   = "cols"
	groupParameter  = "group"
	digestParameter = "digest"
)

func (p *Pages) comparePages() []page {
	return []page{p.comparedMachinePage(), {
		pattern:    "/projects/{project}/compare",
		parameters: []string{aParameter, bParameter, metricParameter, searchParameter, onlyParameter, showParameter, sortParameter, groupParameter, colsParameter, openParameter, digestParameter, pageParameter},
		show:       p.compare,
	}}
}

func (p *Pages) compareActions() []action {
	return []action{{"/projects/{project}/turns", p.measureInTurns}}
}

// comparison returns the address of the page that compares two artifacts; a may be empty.
func comparison(project, a, b string) string {
	query := url.Values{bParameter: {b}}
	if a != "" {
		query.Set(aParameter, a)
	}
	return "/projects/" + segments(project) + "/compare?" + query.Encode()
}

// Comparison returns the address of the page that compares two artifacts, with a digest of
// its results (see [report.Digest]), which later tells which of them have changed.
func Comparison(project, a, b, digest string) string {
	return comparison(project, a, b) + "&" + url.Values{digestParameter: {digest}}.Encode()
}

// openMarkdown opens the Markdown of a comparison.
const openMarkdown = "markdown"

// Problems of artifacts that cannot be compared.
const (
	unmeasured = apiclient.ProblemPrefix + "unmeasured-tag"
	noBaseline = apiclient.ProblemPrefix + "no-baseline"
)

// shownPairs bounds the comparisons that are offered where none is named.
const shownPairs = 20

// compareView is the content of the page that compares two artifacts.
type compareView struct {
	Project string
	// A is the baseline, B the artifact compared with it.
	A, B comparedSide
	// Pairs are comparisons to choose from where none is named. Lacks says why the named
	// artifacts cannot be compared.
	Pairs []apiclient.Request
	Lacks []lack
	// Compared is the answer of the API; nil: there is none. The rest describes it.
	Compared *apiclient.Comparison
	Words    report.Words
	// Attention lists the deciding metrics with changed or undecided rows, Quiet the others.
	Attention, Quiet []report.MetricSummary
	// Sees says, if Attention is empty, which changes would have been seen; empty: it is not known.
	Sees string
	// Failing lists the test cases that fail since B, by reason, Lost the others that only B
	// lacks, Uncompared the rest.
	Failing, Lost, Uncompared []absence
	Table                     comparedTable
	// Since says what has changed since the link was copied; nil: the address has no digest.
	Since *since
	// Digest of the present results.
	Digest string
	// Opened is the row that the address opens; nil: none.
	Opened *openedRow
	// Markdown is the comparison as text to copy; empty: not asked for.
	Markdown string
	// Neighbours lead to the comparison of A with its baseline, and of the next artifact with B.
	Neighbours []link
	// Exports lead to the results in other formats.
	Exports []link
	source  sourceLinks
}

// CommitOf returns the web page of a commit between both sides; empty: not known.
func (c compareView) CommitOf(sha string) string { return c.source.CommitAddress(sha) }

// comparedSide is one of the two artifacts.
type comparedSide struct {
	// Name is "A" or "B", Field its parameter.
	Name, Field, Tag string
	// Request is the artifact's request; nil: none is known.
	Request *apiclient.Request
	// Commit and PullRequest are addresses in the artifact's repository on the web; empty: not
	// known.
	Commit, PullRequest string
	// Parts tell how it was measured.
	Parts []apiclient.MeasuredPart
	// Recorded is the commit as the record has it; nil: it has none.
	Recorded *apiclient.Commit
}

// Title is the name with the role of the side.
func (s comparedSide) Title() string {
	if s.Field == aParameter {
		return s.Name + ", the baseline"
	}
	return s.Name + ", what is judged"
}

// Date returns the commit's date; nil: it is not known.
func (s comparedSide) Date() *time.Time {
	switch {
	case s.Request != nil && s.Request.CommitDate != nil:
		return s.Request.CommitDate
	case s.Recorded != nil:
		return &s.Recorded.CommittedAt
	}
	return nil
}

// lack says why a side cannot be compared.
type lack struct {
	comparedSide
	Reason string
}

// compare shows two artifacts side by side: what changed, how sure that is, and what could
// not be compared.
func (p *Pages) compare(v *visit) (*view, error) {
	project := v.PathValue("project")
	out := compareView{Project: project}
	var err error
	if out.Table, err = readTable(v); err != nil {
		return nil, err
	}
	opened, err := readOpen(v)
	if err != nil {
		return nil, err
	}
	shown := &view{template: "compare", Title: "Compare", Crumbs: []link{projectLink(project)}}
	out.A, out.B = comparedSide{Name: "A", Field: aParameter, Tag: v.get(aParameter)}, comparedSide{Name: "B", Field: bParameter, Tag: v.get(bParameter)}
	if out.B.Tag == "" {
		err = out.choose(v)
		shown.Title, shown.Content = "Compare artifacts of "+project, &out
		return shown, err
	}
	if out.B.Request, err = v.requestOf(project, out.B.Tag); err != nil {
		return nil, err
	}
	if out.B.Request != nil { // before everything else about it is read
		if err := v.live(shown, "request:"+string(out.B.Request.ID)); err != nil {
			return nil, err
		}
	}
	if err := out.read(v); err != nil {
		return nil, err
	}
	if opened != nil && out.Compared != nil {
		if err := out.open(p, v, *opened); err != nil {
			return nil, err
		}
	}
	shown.Title = out.B.Tag + " compared with " + cmp.Or(out.A.Tag, "its baseline")
	query := url.Values{"project": {project}, aParameter: {out.A.Tag}, bParameter: {out.B.Tag}}
	shown.APIPath, shown.Command = "/api/v1/compare?"+query.Encode(), quoted("benchloom", "compare", project, out.A.Tag, out.B.Tag)
	if out.A.Tag == "" {
		shown.APIPath, shown.Command = "", ""
	}
	shown.Content = &out
	return shown, nil
}

// choose offers comparisons where none is named.
func (c *compareView) choose(v *visit) error {
	if _, err := v.api.Project(v.Context(), c.Project); err != nil {
		return err
	}
	newest, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Project: c.Project, Status: bench.Completed, Limit: 5 * shownPairs})
	for _, r := range newest.Requests {
		if r.Baseline != "" && len(c.Pairs) < shownPairs {
			c.Pairs = append(c.Pairs, r)
		}
	}
	return err
}

// requestOf returns the request that an artifact was measured for: a tracked one, else the
// newest; nil if there is none.
func (v *visit) requestOf(project, tag string) (*apiclient.Request, error) {
	found, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Project: project, Tag: tag})
	if err != nil || len(found.Requests) == 0 {
		return nil, err
	}
	tracked := slices.IndexFunc(found.Requests, func(r apiclient.Request) bool { return r.Type != bench.AdHoc })
	return &found.Requests[max(0, tracked)], nil
}

// read compares the two artifacts, or finds out why that cannot be done.
func (c *compareView) read(v *visit) error {
	query := apiclient.CompareQuery{Project: c.Project, A: c.A.Tag, B: c.B.Tag, Runs: true}
	compared, err := v.api.Compare(v.Context(), query)
	if problem := problemIf(err, http.StatusNotFound); problem != nil && (problem.Type == unmeasured || problem.Type == noBaseline) {
		return c.explain(v, problem)
	}
	if err != nil {
		return c.offering(err, c.B)
	}
	if compared.A != c.A.Tag || compared.B != c.B.Tag { // completed, or written in full
		return v.moved(map[string]string{aParameter: compared.A, bParameter: compared.B})
	}
	if err := c.describeSides(v); err != nil {
		return err
	}
	c.Compared, c.Words = &compared, report.Describe(compared.Result, compared.Summary)
	for _, m := range compared.Summary.Metrics {
		switch {
		case !m.Deciding:
		case m.Changed+m.Undecided > 0:
			c.Attention = append(c.Attention, m)
		default:
			c.Quiet = append(c.Quiet, m)
		}
	}
	c.Digest = report.Digest(compared.Result.Rows)
	if c.Since, err = readSince(v, compared.Result.Rows); err != nil {
		return err
	}
	if len(c.Attention) == 0 {
		c.Sees = sees(compared.Result.Rows)
	}
	c.Failing, c.Lost, c.Uncompared = absences(compared)
	if err := c.Table.fill(v, &compared); err != nil {
		return err
	}
	c.Table.addEarlier(v, c.Project, c.B.Tag)
	for i, side := range compared.Sides {
		of := []*comparedSide{&c.A, &c.B}[i]
		of.Parts, of.Recorded = side.Parts, side.Commit
	}
	if compared.Previous != "" {
		c.Neighbours = append(c.Neighbours, link{comparison(c.Project, compared.Previous, c.A.Tag), c.A.Tag + " compared with " + compared.Previous})
	}
	if compared.Next != "" {
		c.Neighbours = append(c.Neighbours, link{comparison(c.Project, c.B.Tag, compared.Next), compared.Next + " compared with " + c.B.Tag})
	}
	if c.A.Request != nil && c.B.Request != nil {
		if diff := c.source.diff(c.A.Request.Type, c.A.Tag, c.B.Request.Type, c.B.Tag); diff != "" {
			c.Neighbours = append(c.Neighbours, link{diff, "Diff at the code host"})
		}
	}
	c.Exports = exports(c.Project, c.A.Tag, c.B.Tag)
	if v.get(openParameter) == openMarkdown {
		query.Runs, query.Sort, query.OnlySignificant = false, "certainty", true
		c.Markdown, err = v.api.CompareText(v.Context(), query, apiclient.FormatMarkdown)
	}
	return err
}

// since says what has changed since the link to a comparison was copied.
type since struct {
	report.Changed
	// More counts the rows that are not listed.
	More int
}

// shownChanged bounds the changed rows that are listed.
const shownChanged = 30

func readSince(v *visit, rows []report.Row) (*since, error) {
	digest := v.get(digestParameter)
	if digest == "" {
		return nil, nil
	}
	changed, err := report.Since(digest, rows)
	if err != nil {
		return nil, badParameter(digestParameter, digest, err.Error())
	}
	out := &since{Changed: changed, More: max(0, len(changed.Rows)-shownChanged)}
	out.Rows = changed.Rows[:len(changed.Rows)-out.More]
	return out, nil
}

// describeSides reads what is known of both artifacts.
func (c *compareView) describeSides(v *visit) error {
	project, err := v.api.Project(v.Context(), c.Project)
	if err != nil {
		return err
	}
	c.source = sourceOf(project)
	for _, side := range []*comparedSide{&c.A, &c.B} {
		if side.Tag == "" {
			continue
		}
		if side.Request == nil { // the request of B is read already
			if side.Request, err = v.requestOf(c.Project, side.Tag); err != nil {
				return err
			}
		}
		if r := side.Request; r != nil {
			side.Commit, side.PullRequest = c.source.commit(r.Type, side.Tag), c.source.PullRequestAddress(r.PR)
		}
	}
	return nil
}

// explain says why two artifacts cannot be compared: one is not known, or not measured yet.
func (c *compareView) explain(v *visit, problem *apiclient.Problem) error {
	if err := c.describeSides(v); err != nil {
		return err
	}
	names := func(tag string) bool { return strings.Contains(problem.Detail, fmt.Sprintf("%q", tag)) }
	if c.A.Tag == "" && problem.Type == noBaseline {
		c.Lacks = append(c.Lacks, lack{c.A, problem.Detail})
	}
	for _, side := range []comparedSide{c.A, c.B} {
		switch {
		case side.Tag == "" || problem.Type == noBaseline || !names(side.Tag):
		case side.Request == nil:
			_, err := v.api.Request(v.Context(), c.Project+":"+side.Tag)
			return c.offering(cmp.Or[error](err, problem), side)
		case side.Request.JobsDoneAt == nil:
			c.Lacks = append(c.Lacks, lack{side, "Its jobs have not ended, and nothing of it is measured that could be compared."})
		default:
			c.Lacks = append(c.Lacks, lack{side, "Its jobs have ended without a result."})
		}
	}
	if len(c.Lacks) == 0 {
		return problem
	}
	return nil
}

// offering adds the comparisons that may have been meant to the error of an unknown artifact.
func (c *compareView) offering(err error, unknown comparedSide) error {
	return &offering{err, func(tag string) link {
		tags := map[string]string{aParameter: c.A.Tag, bParameter: c.B.Tag}
		tags[unknown.Field] = tag
		return link{comparison(c.Project, tags[aParameter], tags[bParameter]), tag}
	}}
}

// exports leads to the results of two artifacts in other formats.
func exports(project, a, b string) []link {
	query := url.Values{"project": {project}, "tag": {a, b}}
	var links []link
	for _, format := range []struct{ name, text string }{{"csv", "CSV"}, {"json", "JSON"}, {"benchfmt", "Go's benchmark format"}} {
		query.Set("format", format.name)
		links = append(links, link{"/api/v1/results/export?" + query.Encode(), format.text})
	}
	return links
}

// absence groups test cases that could not be compared, for one reason.
type absence struct {
	Tag, Reason string
	Count       int
	// TestCases lists the first ones.
	TestCases []string
}

// shownAbsent bounds the test cases that are named for one reason.
const shownAbsent = 50

// absences groups by tag and reason the test cases that were not compared: those that A has and
// that fail for B, others that A has and B lacks, and all others.
func absences(c apiclient.Comparison) (failing, lacking, others []absence) {
	lost := make(map[bench.TestCase]bool)
	for _, tc := range c.Summary.Missing {
		lost[testCase(tc)] = true
	}
	add := func(list []absence, m apiclient.MissingTestCase) []absence {
		at := slices.IndexFunc(list, func(a absence) bool { return a.Tag == m.Tag && a.Reason == m.Reason })
		if at < 0 {
			at, list = len(list), append(list, absence{Tag: m.Tag, Reason: m.Reason})
		}
		one := &list[at]
		if one.Count++; len(one.TestCases) < shownAbsent {
			one.TestCases = append(one.TestCases, m.TestCase.String())
		}
		return list
	}
	for _, m := range c.Missing {
		switch {
		case m.Tag != c.B || !lost[m.TestCase]:
			others = add(others, m)
		case m.Failed:
			failing = add(failing, m)
		default:
			lacking = add(lacking, m)
		}
	}
	return failing, lacking, others
}

// sees says which changes would have been seen in rows without a suspicion; empty: there are
// none.
func sees(rows []report.Row) string {
	var seen []float64
	for i := range rows {
		if r := &rows[i]; r.Is(verdict.NoSuspicion) && r.Sees > 0 {
			seen = append(seen, r.Sees)
		}
	}
	if len(seen) == 0 {
		return ""
	}
	slices.Sort(seen)
	smallest, largest := stats.Percent(seen[0]), stats.Percent(seen[len(seen)-1])
	if smallest == largest {
		return fmt.Sprintf("A change of %s would have been seen.", smallest)
	}
	return fmt.Sprintf("The smallest change that would have been seen is %s in the quietest series, %s in half of them, and %s in all.", smallest, stats.Percent(seen[(len(seen)-1)/2]), largest)
}
