package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Credentials let a process into an S3 server. They show themselves in no log.
type Credentials struct{ AccessKey, SecretKey, SessionToken string }

const hidden = "[credentials]"

func (Credentials) String() string { return hidden }

// GoString hides them from %#v.
func (Credentials) GoString() string { return hidden }

// LogValue hides them from logs in JSON.
func (Credentials) LogValue() slog.Value { return slog.StringValue(hidden) }

// S3Config names a place on an S3 server, or on one that speaks its protocol.
type S3Config struct {
	// Endpoint is the address of the server, such as https://s3.example.com.
	Endpoint string
	// Bucket has the files, with names that begin with Prefix. Nothing else may be put there.
	Bucket, Prefix string
	// Region is us-east-1 if empty, which servers other than Amazon's accept.
	Region string
	// Most bounds the bytes of all files together.
	Most int64
	// Scratch is the directory in which a file is received before it is sent; "": that of the system for temporary files.
	Scratch     string
	Credentials Credentials
}

// ParseS3 returns the place that an address names: https://HOST/BUCKET or https://HOST/BUCKET/PREFIX.
func ParseS3(address string) (S3Config, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the address, which may have a password by mistake.
		return S3Config{}, errors.New("the address of the S3 store is none: write https://HOST/BUCKET/PREFIX")
	}
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case u.User != nil:
		return S3Config{}, errors.New("the address of the S3 store has a user name: credentials belong into the environment, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || bucket == "" || u.RawQuery != "" || u.Fragment != "":
		return S3Config{}, fmt.Errorf("the address of the S3 store, %q, is none: write https://HOST/BUCKET/PREFIX", address)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix = path.Clean(prefix) + "/"
	}
	return S3Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: bucket, Prefix: prefix}, nil
}

// S3 is a store in a bucket of an S3 server.
//
// A file is received on this machine first: its name is known only then, and a request that has the whole file stores it or nothing.
type S3 struct {
	config S3Config
	client minio.Core
}

const (
	// defaultRegion is the one that needs not be told.
	defaultRegion = "us-east-1"
	// tries bounds how often a request is sent, as a server may be busy. Waits between them are below a second.
	tries = 3
)

// OpenS3 opens a store, and fails if its bucket cannot be listed. Connections are made by the transport; nil: one of its own.
func OpenS3(ctx context.Context, c S3Config, transport http.RoundTripper) (*S3, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || c.Bucket == "" || c.Most <= 0 {
		return nil, errors.New("an S3 store needs an endpoint, a bucket and room")
	}
	if c.Credentials.AccessKey == "" || c.Credentials.SecretKey == "" {
		return nil, errors.New("an S3 store needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if c.Region == "" {
		c.Region = defaultRegion
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.Credentials.AccessKey, c.Credentials.SecretKey, c.Credentials.SessionToken),
		Secure: u.Scheme == "https", Region: c.Region, BucketLookup: minio.BucketLookupPath, Transport: transport, MaxRetries: tries,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the S3 store: %w", err)
	}
	s := &S3{config: c, client: *client}
	for _, err := range s.All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("opening the blob store: %w", err)
		}
		break
	}
	return s, nil
}

func (s *S3) key(d Digest) string { return s.config.Prefix + string(d) }

// failed explains an error of the server.
func (s *S3) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%s: %w", doing, ErrNotFound)
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("%s: %s has no bucket %q: make it: %w", doing, s.config.Endpoint, s.config.Bucket, err)
	case answer.StatusCode == http.StatusForbidden || answer.Code == minio.AccessDenied:
		return fmt.Errorf("%s: %s refuses the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or they do not allow this in the bucket %q: %w",
			doing, s.config.Endpoint, s.config.Bucket, err)
	}
	return fmt.Errorf("%s at %s: %w", doing, s.config.Endpoint, err)
}

// Put implements [Store].
func (s *S3) Put(ctx context.Context, from io.Reader, limit int64) (digest Digest, size int64, err error) {
	file, err := os.CreateTemp(s.config.Scratch, "benchloom-blob-")
	if err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	// Without a name, so that nothing is left when the process is killed. Systems that refuse this remove it below.
	nameless := os.Remove(file.Name()) == nil
	defer func() {
		file.Close()
		if !nameless {
			os.Remove(file.Name())
		}
	}()
	if digest, size, err = receive(ctx, file, from, limit, s.config.Most, s.config.Most); err != nil {
		return "", 0, err
	}
	used, err := s.used(ctx, digest)
	if err != nil {
		return "", 0, err
	}
	if used+size > s.config.Most {
		return "", 0, &FullError{Most: s.config.Most}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	_, err = s.client.Client.PutObject(ctx, s.config.Bucket, s.key(digest), file, size, minio.PutObjectOptions{
		ContentType:      "application/octet-stream",
		DisableMultipart: true, // one request stores everything or nothing
	})
	if err != nil {
		return "", 0, s.failed("storing a file", err)
	}
	return digest, size, nil
}

// used returns the bytes of all files but one. Others may add to them before this one is stored: the bound is exceeded by no more than what
// is on its way at the same time.
func (s *S3) used(ctx context.Context, but Digest) (int64, error) {
	var sum int64
	for b, err := range s.All(ctx) {
		if err != nil {
			return 0, err
		}
		if b.Digest != but {
			sum += b.Size
		}
	}
	return sum, nil
}

// Get implements [Store].
func (s *S3) Get(ctx context.Context, digest Digest) (io.ReadCloser, error) {
	if err := digest.check(); err != nil {
		return nil, err
	}
	body, _, _, err := s.client.GetObject(ctx, s.config.Bucket, s.key(digest), minio.GetObjectOptions{})
	if err != nil {
		return nil, s.failed("opening the stored file "+string(digest), err)
	}
	return verify(body, digest), nil
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, digest Digest) error {
	if err := digest.check(); err != nil {
		return err
	}
	err := s.failed("removing a stored file", s.client.RemoveObject(ctx, s.config.Bucket, s.key(digest), minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// All implements [Store].
func (s *S3) All(ctx context.Context) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for object := range s.client.ListObjectsIter(ctx, s.config.Bucket, minio.ListObjectsOptions{Prefix: s.config.Prefix}) {
			if object.Err != nil {
				yield(Blob{}, s.failed("listing the S3 store", object.Err))
				return
			}
			digest, err := ParseDigest(strings.TrimPrefix(object.Key, s.config.Prefix))
			if err != nil {
				continue // not one of ours
			}
			if !yield(Blob{Digest: digest, Size: object.Size, Stored: object.LastModified}, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(Blob{}, fmt.Errorf("listing the S3 store: %w", context.Cause(ctx)))
		}
	}
}
