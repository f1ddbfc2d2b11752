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
	Key        bench.BuildKey `json:"key" doc:"Hash of what it was made of: tree, recipe and target."`
	Project    string         `json:"project"`
	Tree       string         `json:"tree" doc:"Git's name of the tree."`
	Target     bench.Target   `json:"target"`
	Size       int64          `json:"size" doc:"Bytes of the archive, a tar.gz."`
	SHA256     string         `json:"sha256" doc:"Of the archive, in hexadecimal."`
	Chunks     int            `json:"chunks" doc:"Pieces of the archive; all but the last have chunk_bytes."`
	ChunkBytes int            `json:"chunk_bytes"`
	Run        bench.RunID    `json:"run" doc:"The run that built it."`
	CreatedAt  time.Time      `json:"created_at"`
	LastUsed   time.Time      `json:"last_used"`
}

// BuildOrder tells a run what it has to build.
type BuildOrder struct {
	Spec       bench.BuildSpec `json:"spec"`
	MaxBytes   int64           `json:"max_bytes" doc:"Bound of the archive."`
	ChunkBytes int             `json:"chunk_bytes" doc:"Size of the pieces that the archive is uploaded in."`
}

// BuildFinish says what the uploaded pieces are together.
type BuildFinish struct {
	Size   int64  `json:"size" minimum:"1"`
	SHA256 string `json:"sha256" pattern:"^[0-9a-f]{64}$"`
}

// UploadBuildChunk delivers a piece of the archive that a run has built; pieces
// are numbered from 0. Delivering it again changes nothing.
func (c *Client) UploadBuildChunk(ctx context.Context, run bench.RunID, number int, data []byte) error {
	_, _, err := c.do(ctx, call{
		method: http.MethodPut, path: v1("runs", string(run), "build", "chunks", strconv.Itoa(number)),
		body: data, contentType: "application/octet-stream", timeout: transferTimeout,
	})
	return err
}

// FinishBuild makes the delivered pieces the build of the run's job. Doing it
// again changes nothing.
func (c *Client) FinishBuild(ctx context.Context, run bench.RunID, finish BuildFinish) (build Build, err error) {
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "build", "finish"), in: finish, out: &build, timeout: transferTimeout,
	})
	return build, err
}

// Build reads what is stored of a build. Its error is [ErrNotFound] when it is
// not, or not any more.
func (c *Client) Build(ctx context.Context, key bench.BuildKey) (Build, error) {
	return get[Build](ctx, c, v1("builds", string(key)), url.Values{})
}

// BuildChunk fetches a piece of a build's archive. Whoever puts them together
// checks the sum.
func (c *Client) BuildChunk(ctx context.Context, key bench.BuildKey, number int) ([]byte, error) {
	_, data, err := c.do(ctx, call{method: http.MethodGet, path: v1("builds", string(key), "chunks", strconv.Itoa(number)), timeout: transferTimeout})
	return data, err
}
