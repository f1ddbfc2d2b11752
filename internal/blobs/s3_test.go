//go:build linux

package blobs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/blobs"
)

var secrets = blobs.Credentials{AccessKey: "the-access-key", SecretKey: "the-secret-key"}

const bucket = "profiles"

// s3 is a running versitygw, with the data of a directory.
type s3 struct {
	data string
	// attributes has the extended attributes of the data, because not every file system keeps them.
	attributes string
	address    string
	process    *exec.Cmd
}

func startS3(t *testing.T) *s3 {
	t.Helper()
	s := &s3{data: t.TempDir(), attributes: filepath.Join(t.TempDir(), "attributes")}
	require.NoError(t, os.Mkdir(s.attributes, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(s.data, bucket), 0o700))
	s.start(t)
	return s
}

// start starts the server, also once more after it was killed.
func (s *s3) start(t *testing.T) {
	t.Helper()
	program := os.Getenv("BENCHLOOM_VERSITYGW")
	if program == "" {
		program = "../../bin/versitygw"
	}
	program, err := filepath.Abs(program)
	require.NoError(t, err)
	require.FileExists(t, program, `run "make bin/versitygw"`)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = listener.Addr().String()
	require.NoError(t, listener.Close())
	process := exec.CommandContext(t.Context(), program, "--port", s.address, "--quiet", "posix", "--sidecar", s.attributes, s.data)
	process.Env = []string{"ROOT_ACCESS_KEY=" + secrets.AccessKey, "ROOT_SECRET_KEY=" + secrets.SecretKey}
	log := &bytes.Buffer{}
	process.Stdout, process.Stderr = log, log
	require.NoError(t, process.Start())
	s.process = process
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have been killed already
		<-ended
	})
	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 30*time.Second, 10*time.Millisecond, "%s", log)
}

func (s *s3) config(most int64) blobs.S3Config {
	return blobs.S3Config{Endpoint: "http://" + s.address, Bucket: bucket, Prefix: "deep/", Most: most, Credentials: secrets}
}

// open opens a store whose connections end with the test.
func (s *s3) open(t *testing.T, most int64) *blobs.S3 {
	t.Helper()
	store, err := blobs.OpenS3(t.Context(), s.config(most), transport(t, nil))
	require.NoError(t, err)
	return store
}

// transport makes connections, which pass through a function if there is one.
func transport(t *testing.T, through func(net.Conn) net.Conn) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil && through != nil {
			c = through(c)
		}
		return c, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// fuse is a connection that calls a function once so many bytes have been sent, or received.
type fuse struct {
	net.Conn
	left *budget
	sent bool
}

type budget struct {
	mu    sync.Mutex
	bytes int
	spent func()
	once  sync.Once
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes -= n; b.bytes <= 0 {
		b.once.Do(b.spent)
	}
}

func (f fuse) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 { // small parts, so that it happens in the middle
		n, err := f.Conn.Write(p[:min(len(p), 4096)])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
		if f.sent {
			f.left.take(n)
		}
	}
	return written, nil
}

func (f fuse) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p[:min(len(p), 4096)])
	if !f.sent {
		f.left.take(n)
	}
	return n, err
}

// dying opens a store whose server is killed once so many bytes have been sent, or received.
func (s *s3) dying(t *testing.T, after int, sent bool) *blobs.S3 {
	t.Helper()
	left := &budget{bytes: after, spent: func() { _ = s.process.Process.Kill() }}
	store, err := blobs.OpenS3(t.Context(), s.config(64<<20), transport(t, func(c net.Conn) net.Conn { return fuse{c, left, sent} }))
	require.NoError(t, err)
	return store
}

func TestAServerThatDiesInTheMiddleOfAnUploadHasNothing(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	kept := put(t, server.open(t, most), "kept")
	content := strings.Repeat("0123456789abcdef", 1<<20)
	_, _, err := server.dying(t, len(content)/2, true).Put(t.Context(), strings.NewReader(content), int64(len(content)))
	require.Error(t, err)

	server.start(t)
	store := server.open(t, 64<<20)
	require.Equal(t, map[blobs.Digest]int64{kept: 4}, list(t, store))
	_, err = get(t, store, digestOf(content))
	require.ErrorIs(t, err, blobs.ErrNotFound)
	digest, size, err := store.Put(t.Context(), strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	require.Equal(t, int64(len(content)), size)
	back, err := get(t, store, digest)
	require.NoError(t, err)
	require.Equal(t, content, back)
}

func TestAPartOfADownloadIsNotTakenForTheWhole(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	content := strings.Repeat("0123456789abcdef", 1<<20)
	digest, _, err := server.open(t, 64<<20).Put(t.Context(), strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	part, err := get(t, server.dying(t, len(content)/4, false), digest)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	require.Less(t, len(part), len(content))

	server.start(t)
	back, err := get(t, server.open(t, most), digest)
	require.NoError(t, err)
	require.Equal(t, content, back)
}

func TestAnAbsentServerIsNamed(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	store := server.open(t, most)
	require.NoError(t, server.process.Process.Kill())
	_, _, err := store.Put(t.Context(), strings.NewReader("one"), most)
	require.ErrorContains(t, err, server.address)
	_, err = get(t, store, digestOf("one"))
	require.ErrorContains(t, err, server.address)
	require.NotErrorIs(t, err, blobs.ErrNotFound)
	require.ErrorContains(t, store.Delete(t.Context(), digestOf("one")), server.address)
	_, err = blobs.OpenS3(t.Context(), server.config(most), transport(t, nil))
	require.ErrorContains(t, err, server.address)
}

func TestADamagedObjectIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	store := server.open(t, most)
	digest := put(t, store, "a profile")
	require.NoError(t, os.WriteFile(filepath.Join(server.data, bucket, "deep", string(digest)), []byte("an0ther 1"), 0o600))
	_, err := get(t, store, digest)
	require.ErrorIs(t, err, blobs.ErrDamaged)
}

func TestWrongSettingsOfAnS3StoreAreExplained(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	for name, test := range map[string]struct {
		change func(*blobs.S3Config)
		says   string
	}{
		"no credentials": {func(c *blobs.S3Config) { c.Credentials = blobs.Credentials{} }, "AWS_ACCESS_KEY_ID"},
		"wrong key":      {func(c *blobs.S3Config) { c.Credentials.AccessKey = "nobody" }, "access key"}, // the words of this server
		"wrong secret":   {func(c *blobs.S3Config) { c.Credentials.SecretKey = "wrong-and-long" }, "refuses the credentials"},
		"no such bucket": {func(c *blobs.S3Config) { c.Bucket = "elsewhere" }, `no bucket "elsewhere"`},
		"no room":        {func(c *blobs.S3Config) { c.Most = 0 }, "room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := server.config(most)
			test.change(&config)
			_, err := blobs.OpenS3(t.Context(), config, transport(t, nil))
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), secrets.SecretKey)
			require.NotContains(t, err.Error(), "wrong-and-long")
		})
	}
}

func TestCredentialsAreInNoLog(t *testing.T) {
	t.Parallel()
	config := blobs.S3Config{Endpoint: "https://s3.example.com", Credentials: secrets}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opening", "credentials", config.Credentials)
	slog.New(slog.NewTextHandler(&log, nil)).Info("opening", "config", config)
	fmt.Fprintf(&log, "%v %+v %#v %s", config, config, config, config.Credentials)
	require.Contains(t, log.String(), "s3.example.com")
	require.NotContains(t, log.String(), secrets.SecretKey)
	require.NotContains(t, log.String(), secrets.AccessKey)
}

func TestAnAddressNamesBucketAndPrefix(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]blobs.S3Config{
		"https://s3.example.com/profiles":      {Endpoint: "https://s3.example.com", Bucket: "profiles"},
		"https://s3.example.com/profiles/":     {Endpoint: "https://s3.example.com", Bucket: "profiles"},
		"http://127.0.0.1:9000/profiles/a/b/":  {Endpoint: "http://127.0.0.1:9000", Bucket: "profiles", Prefix: "a/b/"},
		"https://s3.example.com/profiles/a//b": {Endpoint: "https://s3.example.com", Bucket: "profiles", Prefix: "a/b/"},
	} {
		got, err := blobs.ParseS3(address)
		require.NoError(t, err, address)
		require.Equal(t, want, got)
	}
	for _, address := range []string{"", "https://", "https://s3.example.com", "https://s3.example.com/", "ftp://s3.example.com/b", "https://h/b?x=y", "https://h/b#c", "https://h:port/b"} {
		_, err := blobs.ParseS3(address)
		require.Error(t, err, address)
	}
	_, err := blobs.ParseS3("https://key:hush@s3.example.com/profiles")
	require.ErrorContains(t, err, "environment")
	require.NotContains(t, err.Error(), "hush")
}
