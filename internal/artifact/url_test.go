package artifact_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"

	"github.com/benchloom/benchloom/internal/artifact"
)

// member is one entry of an archive.
type member struct {
	name, content string
	mode          fs.FileMode // type and permissions
	link          string
	hardLink      bool
}

var compilerFiles = []member{
	{name: "compiler-1/", mode: fs.ModeDir | 0o755},
	{name: "compiler-1/bin/cc", content: "the compiler", mode: 0o755},
	{name: "compiler-1/lib/libc.a", content: "the library", mode: 0o600},
	{name: "compiler-1/bin/c++", mode: fs.ModeSymlink | 0o777, link: "cc"},
	{name: "compiler-1/bin/libc.a", mode: fs.ModeSymlink | 0o777, link: "../lib/libc.a"},
}

func tarOf(t testing.TB, members []member) []byte {
	t.Helper()
	archive, err := encodeTar(members)
	require.NoError(t, err)
	return archive
}

// encodeTar fails for members that the tar format cannot represent.
func encodeTar(members []member) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: int64(m.mode.Perm()), Size: int64(len(m.content)), Linkname: m.link, Typeflag: tar.TypeReg}
		switch {
		case m.hardLink:
			h.Typeflag = tar.TypeLink
		case m.mode&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
		case m.mode&fs.ModeDir != 0:
			h.Typeflag = tar.TypeDir
		case m.mode&fs.ModeDevice != 0:
			h.Typeflag = tar.TypeBlock
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func tarGz(t testing.TB, members []member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(tarOf(t, members))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func tarXz(t testing.TB, members []member) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	require.NoError(t, err)
	_, err = w.Write(tarOf(t, members))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func zipOf(t testing.TB, members []member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(m.mode)
		file, err := w.CreateHeader(h)
		require.NoError(t, err)
		if m.mode&fs.ModeDir == 0 {
			_, err = io.WriteString(file, m.content+m.link)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// serve answers requests for path with body, all others with 404.
func serve(t *testing.T, bodies map[string][]byte) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server
}

func urlCache(t *testing.T, server *httptest.Server, provider artifact.URL) *artifact.Cache {
	t.Helper()
	provider.Client = server.Client()
	return openCache(t, artifact.Options{}, &provider)
}

// download returns a request; parameters are pairs of name and value.
func download(url string, parameters ...string) artifact.Request {
	req := artifact.Request{Provider: "url", Tag: "v1", Target: "x86_64-unknown-linux-gnu", Parameters: map[string]string{"url": url}}
	for i := 0; i < len(parameters); i += 2 {
		req.Parameters[parameters[i]] = parameters[i+1]
	}
	return req
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestArchivesAreUnpacked(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string][]byte{
		"tar.gz": tarGz(t, compilerFiles), "tar.xz": tarXz(t, compilerFiles), "zip": zipOf(t, compilerFiles),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := sumOf(archive)
			server := serve(t, map[string][]byte{
				"/v1/x86_64-unknown-linux-gnu":        archive,
				"/v1/x86_64-unknown-linux-gnu.sha256": []byte(sum + "  x86_64-unknown-linux-gnu\n"),
			})
			cache := urlCache(t, server, artifact.URL{})
			template := server.URL + "/{tag}/{target}"
			var last artifact.Progress
			handle, err := cache.Acquire(t.Context(), download(template, "sha256", "{url}.sha256", "strip_components", "1"), func(p artifact.Progress) {
				if strings.HasPrefix(p.Step, "downloading") {
					last = p
				}
			})
			require.NoError(t, err)
			defer handle.Release()
			require.Equal(t, "sha256:"+sum, handle.Identity())
			require.Equal(t, int64(len(archive)), last.Done)
			require.Equal(t, int64(len(archive)), last.Total)

			files := map[string]string{}
			require.NoError(t, filepath.WalkDir(handle.Dir(), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				content, err := os.ReadFile(path) // through links
				name, _ := filepath.Rel(handle.Dir(), path)
				files[filepath.ToSlash(name)] = string(content)
				return err
			}))
			require.Equal(t, map[string]string{"bin/cc": "the compiler", "bin/c++": "the compiler",
				"lib/libc.a": "the library", "bin/libc.a": "the library"}, files)
			for name, perm := range map[string]fs.FileMode{"bin/cc": 0o111, "lib/libc.a": 0} {
				info, err := os.Stat(filepath.Join(handle.Dir(), name))
				require.NoError(t, err)
				require.Equal(t, perm, info.Mode()&0o111, name)
			}

			// Without stripping the directory stays, and it is another artifact.
			whole := acquire(t, cache, download(template, "sha256", strings.ToUpper(sum)))
			defer whole.Release()
			require.FileExists(t, filepath.Join(whole.Dir(), "compiler-1", "bin", "cc"))

			_, err = cache.Acquire(t.Context(), download(template, "strip_components", "3"), nil)
			require.ErrorContains(t, err, "lower the parameter strip_components")
			require.Equal(t, artifact.Invalid, artifact.KindOf(err))
		})
	}
}

func TestArchivesThatReachOutOfTheirDirectory(t *testing.T) {
	t.Parallel()
	link := func(name, target string) member {
		return member{name: name, mode: fs.ModeSymlink | 0o777, link: target}
	}
	file := func(name string) member { return member{name: name, content: "x", mode: 0o644} }
	for name, members := range map[string][]member{
		"parent":                     {file("../evil")},
		"parent further down":        {file("a/../../evil")},
		"absolute":                   {file("/tmp/evil")},
		"link to parent":             {link("a", "../..")},
		"absolute link":              {link("a", "/etc/passwd")},
		"file through a link":        {file("b/x"), link("a", "b"), file("a/evil")},
		"link through a link":        {link("here", "."), link("here/up", "../evil")},
		"link climbing on the way":   {file("d/e/x"), link("s", "d/e"), link("a", "s/../../evil")},
		"link climbing after a link": {link("d/top", ".."), link("d/a", "top/../evil")},
		"directory through a link":   {file("b/x"), link("a", "b"), {name: "a/c/", mode: fs.ModeDir | 0o755}},
		"directory in a file's way":  {file("a"), file("a/b")},
	} {
		for format, archive := range map[string][]byte{"tar": tarGz(t, members), "zip": zipOf(t, members)} {
			t.Run(name+" in "+format, func(t *testing.T) {
				t.Parallel()
				server := serve(t, map[string][]byte{"/a": archive})
				cache := urlCache(t, server, artifact.URL{})
				_, err := cache.Acquire(t.Context(), download(server.URL+"/a"), nil)
				require.Error(t, err)
				require.Equal(t, artifact.Corrupt, artifact.KindOf(err), err)
				requireClean(t, cache)
				evil, err := filepath.Glob(filepath.Join(cache.Dir(), "..", "*", "evil"))
				require.NoError(t, err)
				require.Empty(t, evil)
			})
		}
	}
	for name, members := range map[string][]member{
		"device":                     {{name: "sda", mode: fs.ModeDevice}},
		"hard link out":              {file("b"), {name: "a", link: "../evil", hardLink: true}},
		"hard link to nothing":       {{name: "a", link: "b", hardLink: true}},
		"hard link to a link":        {file("d/e"), link("d/up", "../d"), {name: "up", link: "d/up", hardLink: true}},
		"hard link by way of a link": {file("b/x"), link("a", "b"), {name: "c", link: "a/x", hardLink: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, map[string][]byte{"/a": tarGz(t, members)})
			_, err := urlCache(t, server, artifact.URL{}).Acquire(t.Context(), download(server.URL+"/a"), nil)
			require.Equal(t, artifact.Corrupt, artifact.KindOf(err), err)
		})
	}
}

func TestLaterMembersReplaceEarlierOnes(t *testing.T) {
	t.Parallel()
	server := serve(t, map[string][]byte{"/a": tarGz(t, []member{
		{name: "a", content: "old", mode: 0o644}, {name: "b", mode: fs.ModeSymlink, link: "a"},
		{name: "a", content: "new", mode: 0o644}, {name: "b", content: "a file", mode: 0o644},
		{name: "c", link: "a", hardLink: true},
	})})
	handle := acquire(t, urlCache(t, server, artifact.URL{}), download(server.URL+"/a"))
	defer handle.Release()
	for name, want := range map[string]string{"a": "new", "b": "a file", "c": "new"} {
		content, err := os.ReadFile(filepath.Join(handle.Dir(), name))
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
}

func TestDownloadsThatFail(t *testing.T) {
	t.Parallel()
	archive := tarGz(t, compilerFiles)
	bomb := tarGz(t, []member{{name: "zeros", content: strings.Repeat("\x00", 1<<20), mode: 0o644}})
	crowd := make([]member, 100)
	for i := range crowd {
		crowd[i] = member{name: fmt.Sprintf("d%d/f", i/2), content: "x", mode: 0o644}
	}
	deep := []member{{name: strings.Repeat("d/", 64) + "f", content: "x", mode: 0o644}}
	long := []member{{name: strings.Repeat("long/", 20) + strings.Repeat("n", 1000), content: "x", mode: 0o644}}
	broken := bytes.Clone(archive)
	broken[len(broken)-6] ^= 0xff // within the checksum of gzip
	sums := strings.Repeat("0", 64)
	bodies := map[string][]byte{
		"/good": archive, "/good.sha256": []byte(sums + " *good\n"), "/sums": []byte(sums + "  one\n" + sums + "  two\n"),
		"/broken": broken, "/short": archive[:len(archive)/2], "/page": []byte("<html>Please log in</html>"), "/empty": {},
		"/bomb": bomb, "/crowd": tarGz(t, crowd), "/crowdzip": zipOf(t, crowd), "/deep": tarGz(t, deep), "/long": tarGz(t, long),
		"/brokenzip": append([]byte("PK\x03\x04"), archive...),
		"/brokenxz":  append([]byte("\xfd7zXZ\x00"), archive...),
	}
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := bodies[r.URL.Path]; ok {
			_, _ = w.Write(body)
			return
		}
		switch r.URL.Path {
		case "/truncated":
			w.Header().Set("Content-Length", strconv.Itoa(len(archive)))
			_, _ = w.Write(archive[:len(archive)/2])
		case "/silent", "/slow":
			if r.URL.Path == "/slow" {
				_, _ = w.Write(archive[:10])
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-released:
			case <-r.Context().Done():
			}
		default:
			status, err := strconv.Atoi(r.URL.Path[1:])
			if err != nil {
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	closed := httptest.NewServer(nil)
	closed.Close()
	const host = "http://user:secret@"
	address := host + server.Listener.Addr().String()

	for name, c := range map[string]struct {
		req      artifact.Request
		provider artifact.URL
		kind     artifact.Kind
		says     string
	}{
		"not there":           {req: download(address + "/none"), kind: artifact.NotFound, says: "404 Not Found"},
		"gone":                {req: download(address + "/410"), kind: artifact.NotFound, says: "check that the tag exists"},
		"forbidden":           {req: download(address + "/403"), kind: artifact.NotFound, says: "refuses access"},
		"too many requests":   {req: download(address + "/429"), kind: artifact.Unavailable, says: "try again later"},
		"server error":        {req: download(address + "/500"), kind: artifact.Unavailable, says: "500 Internal Server Error"},
		"server away":         {req: download(closed.URL), kind: artifact.Unavailable, says: "the download failed"},
		"truncated":           {req: download(address + "/truncated"), kind: artifact.Unavailable, says: "broke off after " + strconv.Itoa(len(archive)/2) + " bytes"},
		"silent":              {req: download(address + "/silent"), provider: artifact.URL{StallTimeout: time.Millisecond}, kind: artifact.Unavailable, says: "sent nothing for too long"},
		"stalled":             {req: download(address + "/slow"), provider: artifact.URL{StallTimeout: 50 * time.Millisecond}, kind: artifact.Unavailable, says: "sent nothing for too long"},
		"wrong sum":           {req: download(address+"/good", "sha256", sums), kind: artifact.Corrupt, says: "SHA-256 is " + sumOf(archive) + ", not " + sums},
		"wrong published sum": {req: download(address+"/good", "sha256", "{url}.sha256"), kind: artifact.Corrupt, says: ", not " + sums},
		"no published sum":    {req: download(address+"/good", "sha256", "{url}.sum"), kind: artifact.NotFound, says: "/good.sum"},
		"sums of others":      {req: download(address+"/good", "sha256", address+"/sums"), kind: artifact.Corrupt, says: "no SHA-256 of the archive in"},
		"broken":              {req: download(address + "/broken"), kind: artifact.Corrupt, says: "gzip: invalid checksum"},
		"cut off":             {req: download(address + "/short"), kind: artifact.Corrupt, says: "unexpected EOF"},
		"a page":              {req: download(address + "/page"), kind: artifact.Corrupt, says: `it begins with "<html>"`},
		"empty":               {req: download(address + "/empty"), kind: artifact.Corrupt, says: "not a usable archive"},
		"broken zip":          {req: download(address + "/brokenzip"), kind: artifact.Corrupt, says: "reading zip"},
		"broken xz":           {req: download(address + "/brokenxz"), kind: artifact.Corrupt, says: "reading xz"},
		"too large":           {req: download(address + "/good"), provider: artifact.URL{MaxDownload: 100}, kind: artifact.Invalid, says: "larger than the allowed 100 bytes"},
		"a bomb":              {req: download(address + "/bomb"), provider: artifact.URL{MaxUnpacked: 1<<20 - 1}, kind: artifact.Invalid, says: "larger than allowed"},
		"a crowd":             {req: download(address + "/crowd"), provider: artifact.URL{MaxEntries: 99}, kind: artifact.Invalid, says: "it has more than 99 files and directories"},
		"a crowd in a zip":    {req: download(address + "/crowdzip"), provider: artifact.URL{MaxEntries: 49}, kind: artifact.Invalid, says: "it has 100 entries"},
		"a deep tree":         {req: download(address + "/deep"), kind: artifact.Corrupt, says: "has 129 bytes and 65 parts; at most 1024 and 64 are allowed"},
		"a long name":         {req: download(address + "/long"), kind: artifact.Corrupt, says: "has 1100 bytes and 21 parts; at most 1024 and 64 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := urlCache(t, server, c.provider)
			_, err := cache.Acquire(t.Context(), c.req, nil)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.kind, artifact.KindOf(err), err)
			require.NotContains(t, err.Error(), "secret")
			require.Empty(t, storedTags(t, cache))
			requireClean(t, cache)
		})
	}

	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cache := urlCache(t, server, artifact.URL{})
		_, err := cache.Acquire(ctx, download(address+"/slow"), func(p artifact.Progress) {
			if strings.HasPrefix(p.Step, "fetching") {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, artifact.Cancelled, artifact.KindOf(err))
	})
}

func TestURLTemplates(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{}, &artifact.URL{})
	resolve := func(tag, template string) (string, error) {
		req := download(template)
		req.Tag = tag
		resolved, err := cache.Resolve(req)
		return resolved.Parameters["url"], err
	}
	for template, want := range map[string]string{
		"https://example.org/{tag}/x.tar.gz": "https://example.org/release/1%20+/x.tar.gz",
		"https://example.org/x?tag={tag}":    "https://example.org/x?tag=release%2F1+%2B",
		"https://example.org/{target}.zip":   "https://example.org/x86_64-unknown-linux-gnu.zip",
	} {
		got, err := resolve("release/1 +", template)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for template, says := range map[string]string{
		"":                             "no URL given",
		"ftp://example.org/{tag}":      "not an http or https URL",
		"https://{tag}.example.org/x":  "placeholder in its host name",
		"https://example.org:1x/{tag}": "is not a URL",
	} {
		_, err := resolve("v1", template)
		require.ErrorContains(t, err, says)
		require.Equal(t, artifact.Invalid, artifact.KindOf(err))
	}
	_, err := resolve("../../secret", "https://example.org/{tag}")
	require.ErrorContains(t, err, "does not fit into a path")
	for parameter, value := range map[string]string{"sha256": "abc", "strip_components": "-1", "checksum": "x"} {
		_, err := cache.Resolve(download("https://example.org/{tag}", parameter, value))
		require.Equal(t, artifact.Invalid, artifact.KindOf(err), parameter)
	}
}
