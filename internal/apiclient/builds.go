package apiclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Build is the stored archive of an artifact that was built from a revision.
type Build struct {
	Key        bench.BuildKey `json:"key" doc:"Hash of tree, recipe and target."`
	Project    string         `json:"project"`
	Tree       string         `json:"tree" doc:"Git's name of the tree."`
	Target     bench.Target   `json:"target"`
	Size       int64          `json:"size" doc:"Bytes of the archive, a tar.gz."`
	SHA256     string         `json:"sha256" doc:"Hash of the archive, in hexadecimal."`
	Chunks     int            `json:"chunks" doc:"Pieces of the archive; all but the last have chunk_bytes."`
	ChunkBytes int            `json:"chunk_bytes"`
	Run        bench.RunID    `json:"run" doc:"The run that built it."`
	CreatedAt  time.Time      `json:"created_at"`
	LastUsed   time.Time      `json:"last_used"`
}

// BuildOrder describes what a run must build.
type BuildOrder struct {
	Spec       bench.BuildSpec `json:"spec"`
	MaxBytes   int64           `json:"max_bytes" doc:"Maximum size of the archive."`
	ChunkBytes int             `json:"chunk_bytes" doc:"Size of the pieces in which the archive is uploaded."`
}

// BuildFinish describes the archive that the uploaded pieces form.
type BuildFinish struct {
	Size   int64  `json:"size" minimum:"1"`
	SHA256 string `json:"sha256" pattern:"^[0-9a-f]{64}$"`
}

// UploadBuildChunk uploads a piece of the archive that a run has built; pieces are
// numbered from 0. Uploading it again changes nothing.
func (c *Client) UploadBuildChunk(ctx context.Context, run bench.RunID, number int, data []byte) error {
	_, _, err := c.do(ctx, call{
		method: http.MethodPut, path: v1("runs", string(run), "build", "chunks", strconv.Itoa(number)),
		body: data, contentType: "application/octet-stream", timeout: transferTimeout,
	})
	return err
}

// FinishBuild makes the uploaded pieces the build of the run's job. Repeating it
// changes nothing.
func (c *Client) FinishBuild(ctx context.Context, run bench.RunID, finish BuildFinish) (build Build, err error) {
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "build", "finish"), in: finish, out: &build, timeout: transferTimeout,
	})
	return build, err
}

// Build returns a stored build. The error is [ErrNotFound] if it is not stored.
func (c *Client) Build(ctx context.Context, key bench.BuildKey) (Build, error) {
	return get[Build](ctx, c, v1("builds", string(key)), url.Values{})
}

// BuildChunk returns a piece of a build's archive. The caller checks the archive's
// hash.
func (c *Client) BuildChunk(ctx context.Context, key bench.BuildKey, number int) ([]byte, error) {
	_, data, err := c.do(ctx, call{method: http.MethodGet, path: v1("builds", string(key), "chunks", strconv.Itoa(number)), timeout: transferTimeout})
	return data, err
}
