// Package blobs keeps files under the hash of their content: raw profiles and what else is too large for the record. A store is bounded, and
// has a file either whole or not at all, whatever ends the process, the disk or the network meanwhile.
//
// It must not know what is in the files, or who refers to them.
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"github.com/dustin/go-humanize"
)

// Digest is the SHA-256 of a content, as 64 hexadecimal digits in lower case.
type Digest string

// ParseDigest checks a digest that came from elsewhere.
func ParseDigest(text string) (Digest, error) {
	d := Digest(text)
	return d, d.check()
}

func (d Digest) check() error {
	if len(d) != hex.EncodedLen(sha256.Size) {
		return fmt.Errorf("a digest has %d digits, not %d", hex.EncodedLen(sha256.Size), len(d))
	}
	for _, digit := range []byte(d) {
		if (digit < '0' || digit > '9') && (digit < 'a' || digit > 'f') {
			return fmt.Errorf("the digest %q has other characters than 0 to 9 and a to f", string(d))
		}
	}
	return nil
}

func digestOf(h hash.Hash) Digest { return Digest(hex.EncodeToString(h.Sum(nil))) }

// Blob describes a stored file.
type Blob struct {
	Digest Digest
	Size   int64
	// Stored is when it was last put. Who removes what nobody refers to spares young ones: their references may still be on the way.
	Stored time.Time
}

// Store keeps files. Any number of goroutines and processes may use one at the same time. The context of a call bounds it.
type Store interface {
	// Put stores what it reads, at most limit bytes of it. Storing a content again makes it young. It returns a [*TooLargeError] for more
	// bytes, and a [*FullError] if the store has no room for them.
	Put(ctx context.Context, from io.Reader, limit int64) (Digest, int64, error)
	// Get opens a file, or returns [ErrNotFound]. Reading fails with [ErrDamaged] instead of ending if the content is another, and never ends
	// early: a part is not taken for the whole.
	Get(ctx context.Context, d Digest) (io.ReadCloser, error)
	// Delete removes a file. One that is not there is removed already.
	Delete(ctx context.Context, d Digest) error
	// All lists the files in no certain order, until the first error.
	All(ctx context.Context) iter.Seq2[Blob, error]
}

var (
	// ErrNotFound is returned for a digest that the store does not have.
	ErrNotFound = errors.New("no such file is stored")
	// ErrDamaged is returned when a content does not have its digest.
	ErrDamaged = errors.New("the stored file is damaged: its content has another digest")
)

// TooLargeError reports a file above the limit of its caller.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than the allowed %s", humanize.IBytes(uint64(max(0, e.Limit))))
}

// FullError reports a store without room for a file.
type FullError struct{ Most int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("the blob store has no room for the file: it keeps at most %s; let it keep more, or remove old profiles", humanize.IBytes(uint64(e.Most)))
}

// receive copies a file of at most limit bytes, of which the store has room for some.
func receive(ctx context.Context, to io.Writer, from io.Reader, limit, room, most int64) (Digest, int64, error) {
	bound := min(limit, max(room, 0))
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(whileLive{ctx, from}, bound+1))
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("receiving a file: %w", err)
	case n > limit:
		return "", 0, &TooLargeError{Limit: limit}
	case n > bound:
		return "", 0, &FullError{Most: most}
	}
	return digestOf(sum), n, nil
}

// whileLive ends reading when the context ends.
type whileLive struct {
	ctx context.Context // lives as long as the copying
	io.Reader
}

func (r whileLive) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// verified fails at the end of a content that does not have its digest.
type verified struct {
	io.ReadCloser
	want Digest
	sum  hash.Hash
}

func verify(content io.ReadCloser, want Digest) io.ReadCloser {
	return &verified{ReadCloser: content, want: want, sum: sha256.New()}
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.sum.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) && digestOf(v.sum) != v.want {
		err = fmt.Errorf("reading %s: %w", v.want, ErrDamaged)
	}
	return n, err
}
