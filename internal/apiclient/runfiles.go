package apiclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// RunFile is a file that a run has kept.
type RunFile struct {
	Path      string    `json:"path" doc:"Within the job's directory, with slashes."`
	Digest    string    `json:"digest" doc:"SHA-256 in hexadecimal."`
	Size      int64     `json:"size" doc:"In bytes."`
	CreatedAt time.Time `json:"created_at"`
}

// RunFileList lists the files of a run by their paths.
type RunFileList struct {
	Files []RunFile `json:"files"`
}

// StoreRunFile uploads a file of a run: size bytes. Uploading it again changes nothing.
func (c *Client) StoreRunFile(ctx context.Context, run bench.RunID, path string, size int64, body io.ReadSeeker) (stored RunFile, err error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return stored, fmt.Errorf("reading file %s: %w", path, err)
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPut, path: v1("runs", string(run), "files"), query: url.Values{"path": {path}},
		stream: body, size: size, contentType: "application/octet-stream", out: &stored, timeout: transferTimeout,
	})
	return stored, err
}

// RunFiles lists the files that a run has kept.
func (c *Client) RunFiles(ctx context.Context, run bench.RunID) ([]RunFile, error) {
	list, err := get[RunFileList](ctx, c, v1("runs", string(run), "files"), nil)
	return list.Files, err
}

// RunFile downloads a file that a run has kept.
func (c *Client) RunFile(ctx context.Context, run bench.RunID, path string, to io.Writer) error {
	bounded, stop := context.WithTimeout(ctx, transferTimeout)
	defer stop()
	response, err := c.send(bounded, ctx, call{method: http.MethodGet, path: v1("runs", string(run), "files", "content"), query: url.Values{"path": {path}}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("downloading file %s of run %s: %w", path, run, err)
	}
	return nil
}
