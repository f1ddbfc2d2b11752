package apiclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Info describes the API and the owner of the client's token.
func (c *Client) Info(ctx context.Context) (Info, error) {
	return get[Info](ctx, c, v1("info"), nil)
}

// Healthy returns an error if the API's process does not answer.
func (c *Client) Healthy(ctx context.Context) error {
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/healthz"})
	return err
}

// Ready returns an error if the API does not reach everything it needs.
func (c *Client) Ready(ctx context.Context) error {
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz"})
	return err
}

// Projects lists all projects.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	list, err := get[ProjectList](ctx, c, v1("projects"), nil)
	return list.Projects, err
}

// Project reads one project.
func (c *Client) Project(ctx context.Context, name string) (Project, error) {
	return get[Project](ctx, c, v1("projects", name), nil)
}

// ApplyProject creates or changes a project, or in a dry run only returns the changes.
func (c *Client) ApplyProject(ctx context.Context, p Project, dryRun bool) (applied Applied, err error) {
	query := url.Values{}
	if dryRun {
		query.Set("dry_run", "true")
	}
	_, _, err = c.do(ctx, call{method: http.MethodPut, path: v1("projects", p.Name), query: query, in: p, out: &applied})
	return applied, err
}

// PutSuite uploads a suite's archive under its content hash.
func (c *Client) PutSuite(ctx context.Context, hash string, archive []byte) (info SuiteInfo, err error) {
	_, _, err = c.do(ctx, call{
		method: http.MethodPut, path: v1("suites", hash), body: archive, contentType: "application/gzip", out: &info, timeout: transferTimeout,
	})
	return info, err
}

// SuiteArchive returns a suite's archive. The caller checks the hash.
func (c *Client) SuiteArchive(ctx context.Context, hash string) ([]byte, error) {
	_, archive, err := c.do(ctx, call{method: http.MethodGet, path: v1("suites", hash), timeout: transferTimeout})
	return archive, err
}

// CreateRequest submits an artifact to be benchmarked. Created is false in the answer
// if it was submitted before.
func (c *Client) CreateRequest(ctx context.Context, r NewRequest) (Request, error) {
	return post[Request](ctx, c, v1("requests"), r)
}

// RequestQuery narrows a list of requests; zero values do not narrow.
type RequestQuery struct {
	Project string
	Type    bench.RequestType
	Status  bench.RequestStatus
	Tag     string
	Limit   int
	// Cursor is Next of the previous page.
	Cursor string
}

// Requests lists requests, newest first.
func (c *Client) Requests(ctx context.Context, q RequestQuery) (RequestList, error) {
	query := url.Values{}
	set(query, "project", q.Project)
	set(query, "type", string(q.Type))
	set(query, "status", string(q.Status))
	set(query, "tag", q.Tag)
	set(query, "cursor", q.Cursor)
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[RequestList](ctx, c, v1("requests"), query)
}

// Request returns a request with its jobs and runs, by its ID or as project:tag.
func (c *Client) Request(ctx context.Context, ref string) (RequestDetail, error) {
	return get[RequestDetail](ctx, c, v1("requests", ref), nil)
}

// RequestJobs lists the jobs of a request, named by its ID or as project:tag, in order
// of creation.
func (c *Client) RequestJobs(ctx context.Context, ref string, q JobQuery) (JobList, error) {
	query := url.Values{}
	set(query, "status", string(q.Status))
	set(query, "after", q.After)
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[JobList](ctx, c, v1("requests", ref, "jobs"), query)
}

// ArtifactsReady reports that the artifacts of a request, named by its ID or as
// project:tag, are ready.
func (c *Client) ArtifactsReady(ctx context.Context, ref string, artifact ArtifactsReady) (Notified, error) {
	return post[Notified](ctx, c, v1("requests", ref, "artifacts-ready"), artifact)
}

// Admissions lists a project's latest admissions, oldest first.
func (c *Client) Admissions(ctx context.Context, project string) (AdmissionList, error) {
	return get[AdmissionList](ctx, c, v1("projects", project, "admissions"), nil)
}

// Job reads a job with its runs.
func (c *Client) Job(ctx context.Context, key bench.JobKey) (JobDetail, error) {
	return get[JobDetail](ctx, c, v1("jobs", string(key)), nil)
}

// LogQuery asks for a piece of a log.
type LogQuery struct {
	// Run is the number of the job's run; 0: its last one.
	Run int
	// From is the offset in bytes.
	From int64
	// Wait bounds the wait for output if there is none yet, in whole seconds up to
	// 20 s.
	Wait time.Duration
}

// LogPiece is a piece of a run's output.
type LogPiece struct {
	Run  bench.RunID
	Data []byte
	// Next is the offset of the next piece.
	Next int64
	// Complete reports whether this is the end of the log.
	Complete bool
}

// JobLog reads the output of one of a job's runs.
func (c *Client) JobLog(ctx context.Context, key bench.JobKey, q LogQuery) (LogPiece, error) {
	return c.log(ctx, v1("jobs", string(key), "log"), q)
}

// RunLog reads the output of a run.
func (c *Client) RunLog(ctx context.Context, run bench.RunID, q LogQuery) (LogPiece, error) {
	q.Run = 0
	return c.log(ctx, v1("runs", string(run), "log"), q)
}

func (c *Client) log(ctx context.Context, path string, q LogQuery) (LogPiece, error) {
	query := url.Values{"from": {strconv.FormatInt(q.From, 10)}}
	if q.Run > 0 {
		query.Set("run", strconv.Itoa(q.Run))
	}
	if seconds := int(q.Wait.Seconds()); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds))
	}
	header, data, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, timeout: q.Wait + callTimeout})
	if err != nil {
		return LogPiece{}, err
	}
	next, err := strconv.ParseInt(header.Get(HeaderNextOffset), 10, 64)
	if err != nil {
		return LogPiece{}, fmt.Errorf("reading a log: the answer's header %s is %q; is %s the address of the Benchloom API?", HeaderNextOffset, header.Get(HeaderNextOffset), c.base)
	}
	return LogPiece{Run: bench.RunID(header.Get(HeaderRun)), Data: data, Next: next, Complete: header.Get(HeaderComplete) == "true"}, nil
}

// CompareQuery selects what is compared and how it is written.
type CompareQuery struct {
	Project string
	// A is the tag of the baseline, B the tag of the judged artifact.
	A, B string
	// Metrics, Benchmarks, Profiles, Scenarios, Backends and Targets narrow the
	// comparison; empty lists do not.
	Metrics    []bench.Metric
	Benchmarks []string
	Profiles   []string
	Scenarios  []string
	Backends   []string
	Targets    []bench.Target
	// OnlyInTurns leaves out results that were not measured in turns.
	OnlyInTurns bool
	// Runs adds the run of each test case.
	Runs bool
	// Sort (name, size or certainty), OnlySignificant, Reasons, Color and Width
	// determine the text.
	Sort            string
	OnlySignificant bool
	Reasons         bool
	Color           bool
	Width           int
}

func (q CompareQuery) values(format string) url.Values {
	query := url.Values{"project": {q.Project}, "b": {q.B}}
	set(query, "a", q.A)
	set(query, "format", format)
	for _, m := range q.Metrics {
		query.Add("metric", string(m))
	}
	for _, t := range q.Targets {
		query.Add("target", string(t))
	}
	for name, values := range map[string][]string{"benchmark": q.Benchmarks, "profile": q.Profiles, "scenario": q.Scenarios, "backend": q.Backends} {
		for _, v := range values {
			query.Add(name, v)
		}
	}
	set(query, "sort", q.Sort)
	for name, on := range map[string]bool{"in_turns": q.OnlyInTurns, "runs": q.Runs, "significant": q.OnlySignificant, "reasons": q.Reasons, "color": q.Color} {
		if on {
			query.Set(name, "true")
		}
	}
	if q.Width > 0 {
		query.Set("width", strconv.Itoa(q.Width))
	}
	return query
}

// Compare compares two artifacts. The answer lacks single values, so it cannot be
// written as a table; for that, see [Client.CompareText].
func (c *Client) Compare(ctx context.Context, q CompareQuery) (Comparison, error) {
	return read[Comparison](ctx, c, v1("compare"), q.values(""))
}

// ComparedValues lists the single values behind a row of a comparison, in the order of
// measuring. The row is named by its ID, see [report.RowID]; a may be empty.
func (c *Client) ComparedValues(ctx context.Context, project, a, b, row string) (ComparedValues, error) {
	query := url.Values{"project": {project}, "b": {b}, "row": {row}}
	set(query, "a", a)
	return read[ComparedValues](ctx, c, v1("compare", "values"), query)
}

// ComparedMachine tells what the machine did while the values of a row were measured, side by side. The row is named as for
// [Client.ComparedValues].
func (c *Client) ComparedMachine(ctx context.Context, project, a, b, row string) (ComparedMachine, error) {
	query := url.Values{"project": {project}, "b": {b}, "row": {row}}
	set(query, "a", a)
	return read[ComparedMachine](ctx, c, v1("compare", "machine"), query)
}

// MaxEarlierRows bounds the rows of one call of [Client.EarlierValues].
const MaxEarlierRows = 200

// EarlierValues reads the medians of rows of a comparison on the artifacts before B, at most
// thirty.
func (c *Client) EarlierValues(ctx context.Context, project, b string, rows []string) (EarlierValues, error) {
	return read[EarlierValues](ctx, c, v1("compare", "earlier"), url.Values{"project": {project}, "b": {b}, "row": rows})
}

// Formats of [Client.CompareText].
const (
	FormatText     = "text"
	FormatMarkdown = "markdown"
)

// CompareText compares two artifacts and returns the comparison as text in one of the
// formats.
func (c *Client) CompareText(ctx context.Context, q CompareQuery, format string) (string, error) {
	_, text, err := c.do(ctx, call{method: http.MethodGet, path: v1("compare"), query: q.values(format), timeout: readTimeout})
	return string(text), err
}

// Export copies a project's collections to w, in the format benchfmt, csv or
// json; without tags, those of all artifacts. It has no timeout of its own.
func (c *Client) Export(ctx context.Context, w io.Writer, project, format string, tags ...string) error {
	return c.export(ctx, w, format, url.Values{"project": {project}, "tag": tags})
}

// ExportInTurns copies the collections that were measured in turns with another artifact,
// as [Client.Export] does all others.
func (c *Client) ExportInTurns(ctx context.Context, w io.Writer, project, format string, tags ...string) error {
	return c.export(ctx, w, format, url.Values{"project": {project}, "tag": tags, "in_turns": {"true"}})
}

func (c *Client) export(ctx context.Context, w io.Writer, format string, query url.Values) error {
	set(query, "format", format)
	response, err := c.send(ctx, ctx, call{method: http.MethodGet, path: v1("results", "export"), query: query})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("the export broke off: %w", transportError(ctx, c.base, err))
	}
	return nil
}
