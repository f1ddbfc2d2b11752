package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/blobs"
)

// Files in the blob store: receiving and sending them, whatever they are.

// fileWords says what to do about files of one kind.
type fileWords struct {
	// tooLarge is the advice for a file above its limit, gone says that one is not stored.
	tooLarge, gone string
}

type storedFileKey struct{}

// noFiles is the problem of an API without a blob store.
func noFiles() error {
	return problemf(http.StatusServiceUnavailable, "no-blob-store", "this service keeps no files; start its API with --blobs")
}

// storeBody stores the body of a request as it arrives, at most limit bytes. A nil store keeps
// nothing.
func (s *base) storeBody(ctx huma.Context, files blobs.Store, limit int64, words fileWords) (apiclient.StoredFile, error) {
	if files == nil {
		return apiclient.StoredFile{}, noFiles()
	}
	// Deadlines follow the real clock; a writer without deadlines has no connection.
	_ = ctx.SetReadDeadline(time.Now().Add(bodyBound))
	from := &sender{from: ctx.BodyReader()}
	digest, size, err := files.Put(ctx.Context(), from, limit)
	switch {
	case from.err != nil:
		return apiclient.StoredFile{}, problemf(http.StatusBadRequest, "malformed", "the body broke off: %s; send it again", from.err)
	case err != nil:
		return apiclient.StoredFile{}, s.blobsFailed(ctx.Context(), err, words)
	}
	return apiclient.StoredFile{Digest: string(digest), Size: size}, nil
}

// sender remembers that sending failed, as opposed to storing.
type sender struct {
	from io.Reader
	err  error
}

func (s *sender) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// openFile opens a stored file. A nil store has none.
func (s *base) openFile(ctx context.Context, files blobs.Store, digest string, words fileWords) (io.ReadCloser, error) {
	if files == nil {
		return nil, noFiles()
	}
	file, err := files.Get(ctx, blobs.Digest(digest))
	if err != nil {
		return nil, s.blobsFailed(ctx, err, words)
	}
	return file, nil
}

// blobsFailed returns the problem of a call of the blob store.
func (s *base) blobsFailed(ctx context.Context, err error, words fileWords) error {
	if large, ok := errors.AsType[*blobs.TooLargeError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "too-large", "%s; %s", large, words.tooLarge)
	}
	if full, ok := errors.AsType[*blobs.FullError](err); ok {
		return problemf(http.StatusInsufficientStorage, "blob-store-full", "%s", full)
	}
	if errors.Is(err, blobs.ErrNotFound) {
		return problemf(http.StatusNotFound, "unknown-file", "%s", words.gone)
	}
	if ctx.Err() != nil {
		return err
	}
	s.Log.WarnContext(ctx, "the blob store fails", "error", err, "request_id", requestID(ctx))
	return huma.ErrorWithHeaders(problemf(http.StatusServiceUnavailable, "blob-store-away", "the store of files does not answer as it should, the API's log says why; try again in a moment"), http.Header{"Retry-After": {"1"}})
}

// attached sends a file. An error on the way breaks the answer off, so that the client
// notices that it is incomplete.
func (s *base) attached(contentType, name string, file io.ReadCloser) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer file.Close()
		ctx.SetHeader("Content-Type", contentType)
		ctx.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		ctx.SetStatus(http.StatusOK)
		if _, err := io.Copy(ctx.BodyWriter(), file); err != nil {
			s.Log.WarnContext(ctx.Context(), "a download of a profile broke off", "file", name, "error", err, "request_id", requestID(ctx.Context()))
			panic(http.ErrAbortHandler)
		}
	}}
}
