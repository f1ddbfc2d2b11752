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
	"github.com/benchloom/benchloom/internal/flame"
)

// Bounds of the files of a profile in bytes.
const (
	// MaxRawProfile bounds the raw file that a profiler writes.
	MaxRawProfile = 256 << 20
	// MaxCodeProfile bounds a profile in google/pprof's form.
	MaxCodeProfile = 64 << 20
)

// StoredFile describes a file in the blob store.
type StoredFile struct {
	Digest string `json:"digest" doc:"SHA-256 in hexadecimal."`
	Size   int64  `json:"size" doc:"In bytes."`
}

// NewCodeProfile describes an uploaded profile.
type NewCodeProfile struct {
	// Raw is the digest of the raw file, which has been stored before.
	Raw string
	// Format of the raw file.
	Format flame.Format
}

// CodeProfile describes a stored profile of a program.
type CodeProfile struct {
	ID      bench.ProfileID `json:"id"`
	Project string          `json:"project"`
	Request bench.RequestID `json:"request"`
	Job     bench.JobKey    `json:"job"`
	Run     bench.RunID     `json:"run"`
	Tag     string          `json:"tag" doc:"The artifact."`
	bench.TestCase
	Profiler    string              `json:"profiler"`
	Collector   string              `json:"collector"`
	HardwareID  string              `json:"hardware_id,omitempty"`
	Format      string              `json:"format" doc:"Format of the raw file."`
	RawDigest   string              `json:"raw_digest" doc:"SHA-256 of the raw file, in hexadecimal."`
	RawSize     int64               `json:"raw_size" doc:"Size of the raw file in bytes."`
	Digest      string              `json:"digest" doc:"SHA-256 of the profile in google/pprof's form, in hexadecimal."`
	Size        int64               `json:"size" doc:"Size in google/pprof's form, in bytes."`
	SampleTypes []bench.SampleTotal `json:"sample_types" doc:"Types of its samples, each with the sum of all."`
	CreatedAt   time.Time           `json:"created_at"`
}

// CodeProfileList lists profiles of programs.
type CodeProfileList struct {
	Profiles []CodeProfile `json:"profiles"`
}

// FlameQuery chooses what a flame graph shows.
type FlameQuery struct {
	// Type is the type of samples; empty: the profile's.
	Type string
	// At is the ID of the frame that has the whole width; empty: the root.
	At string
	// Search is text in function names; the answer has the value of such functions. Empty: none.
	Search string
	// Boxes bounds the number of boxes; 0: the API's default.
	Boxes int
}

func (q FlameQuery) values() url.Values {
	query := url.Values{}
	set(query, "type", q.Type)
	set(query, "at", q.At)
	set(query, "search", q.Search)
	if q.Boxes > 0 {
		query.Set("boxes", strconv.Itoa(q.Boxes))
	}
	return query
}

// DrawnProfile is a profile, or the difference of two, as it is drawn.
type DrawnProfile struct {
	Graph flame.Graph `json:"graph"`
	Types []string    `json:"types" doc:"The types of samples to choose from."`
	// Matched is the value of samples with a function that was searched for.
	Matched int64 `json:"matched,omitempty" doc:"Value of the samples with a function whose name contains the text that was searched for, anywhere in their stacks."`
	// Functions has the first functions of a profile, Changes those of a difference; one of them is nil.
	Functions *flame.Table      `json:"functions,omitempty" doc:"The functions with the largest own values."`
	Changes   *flame.Difference `json:"changes,omitempty" doc:"The functions whose own shares changed most, of a difference."`
	// More counts the functions that are left out.
	More int `json:"more,omitempty" doc:"Functions that are left out."`
}

// ProfileForm names a form in which a profile is downloaded.
type ProfileForm string

// The forms of a profile.
const (
	FormRaw        ProfileForm = "raw"
	FormPprof      ProfileForm = "pprof"
	FormFolded     ProfileForm = "folded"
	FormSpeedscope ProfileForm = "speedscope"
	FormHTML       ProfileForm = "html"
)

// StoreRawProfile uploads the raw file of a run's profiler, of size bytes. Uploading it
// again changes nothing.
func (c *Client) StoreRawProfile(ctx context.Context, run bench.RunID, size int64, body io.ReadSeeker) (stored StoredFile, err error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return stored, fmt.Errorf("reading the file of a profiler: %w", err)
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPut, path: v1("runs", string(run), "code-profile", "raw"),
		stream: body, size: size, contentType: "application/octet-stream", out: &stored, timeout: transferTimeout,
	})
	return stored, err
}

// StoreCodeProfile uploads the profile of a run in google/pprof's form. Uploading it again
// changes nothing.
func (c *Client) StoreCodeProfile(ctx context.Context, run bench.RunID, p NewCodeProfile, body []byte) (stored CodeProfile, err error) {
	_, _, err = c.do(ctx, call{
		method: http.MethodPut, path: v1("runs", string(run), "code-profile"), query: url.Values{"raw": {p.Raw}, "format": {string(p.Format)}},
		body: body, contentType: "application/octet-stream", out: &stored, timeout: transferTimeout,
	})
	return stored, err
}

// CodeProfileQuery narrows a list of profiles; zero values do not narrow.
type CodeProfileQuery struct {
	Request        bench.RequestID
	Job            bench.JobKey
	Run            bench.RunID
	Tag, Benchmark string
	Limit          int
}

// CodeProfiles lists a project's profiles, the newest first.
func (c *Client) CodeProfiles(ctx context.Context, project string, q CodeProfileQuery) ([]CodeProfile, error) {
	query := url.Values{}
	set(query, "request", string(q.Request))
	set(query, "job", string(q.Job))
	set(query, "run", string(q.Run))
	set(query, "tag", q.Tag)
	set(query, "benchmark", q.Benchmark)
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	list, err := get[CodeProfileList](ctx, c, v1("projects", project, "profiles"), query)
	return list.Profiles, err
}

// CodeProfile describes a profile.
func (c *Client) CodeProfile(ctx context.Context, id bench.ProfileID) (CodeProfile, error) {
	return get[CodeProfile](ctx, c, v1("profiles", string(id)), nil)
}

// CodeProfileFile downloads a profile into to. An empty sample type stands for the profile's.
func (c *Client) CodeProfileFile(ctx context.Context, id bench.ProfileID, form ProfileForm, sampleType string, to io.Writer) error {
	query := url.Values{"form": {string(form)}}
	set(query, "type", sampleType)
	bounded, stop := context.WithTimeout(ctx, transferTimeout)
	defer stop()
	response, err := c.send(bounded, ctx, call{method: http.MethodGet, path: v1("profiles", string(id), "file"), query: query})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("downloading profile %s: %w", id, err)
	}
	return nil
}

// CodeProfileFunctions lists the functions of a profile with the largest own values.
func (c *Client) CodeProfileFunctions(ctx context.Context, id bench.ProfileID, sampleType string) (flame.Table, error) {
	query := url.Values{}
	set(query, "type", sampleType)
	return read[flame.Table](ctx, c, v1("profiles", string(id), "functions"), query)
}

// CodeProfileDifference lists the functions that changed most from profile a to profile b.
func (c *Client) CodeProfileDifference(ctx context.Context, a, b bench.ProfileID, sampleType string) (flame.Difference, error) {
	query := url.Values{"a": {string(a)}, "b": {string(b)}}
	set(query, "type", sampleType)
	return read[flame.Difference](ctx, c, v1("profiles", "diff"), query)
}

// CodeProfileFlames lays out a profile as a flame graph.
func (c *Client) CodeProfileFlames(ctx context.Context, id bench.ProfileID, q FlameQuery) (DrawnProfile, error) {
	return read[DrawnProfile](ctx, c, v1("profiles", string(id), "flames"), q.values())
}

// CodeProfileDifferenceFlames lays out how profile b differs from profile a.
func (c *Client) CodeProfileDifferenceFlames(ctx context.Context, a, b bench.ProfileID, q FlameQuery) (DrawnProfile, error) {
	query := q.values()
	query.Set("a", string(a))
	query.Set("b", string(b))
	return read[DrawnProfile](ctx, c, v1("profiles", "diff", "flames"), query)
}
