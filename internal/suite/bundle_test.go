package suite_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

const tiny = "name: tiny\nartifact: {provider: goroot}\nbenchmarks: [{name: a, files: data, measure: {run: [sh, run.sh]}}]\n"

// folder creates a directory of files; those that end in .sh are executable.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "suite")
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
	}
	return dir
}

func tinyFiles() map[string]string {
	return map[string]string{"suite.yaml": tiny, "data/run.sh": "echo hello\n", "data/deep/x.txt": "x"}
}

func TestABundleIsTheFolderAndNothingElse(t *testing.T) {
	t.Parallel()
	files := tinyFiles()
	dir := folder(t, files)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("x"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))

	bundle, err := suite.Pack(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"data/deep/x.txt", "data/run.sh", "suite.yaml"}, bundle.Files())
	s, err := bundle.Load()
	require.NoError(t, err)
	require.Equal(t, "tiny", s.Name())

	target := filepath.Join(t.TempDir(), "unpacked")
	require.NoError(t, suite.Unpack(bytes.NewReader(bundle.Archive), bundle.Hash, target))
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(target, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	info, err := os.Stat(filepath.Join(target, "data/run.sh"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	again, err := suite.Pack(target)
	require.NoError(t, err)
	require.Equal(t, bundle.Hash, again.Hash)
	require.Equal(t, bundle.Archive, again.Archive, "the same bytes wherever it is packed")
}

func TestTheHashIsOfWhatMatters(t *testing.T) {
	t.Parallel()
	hash := func(change func(dir string)) string {
		dir := folder(t, tinyFiles())
		change(dir)
		bundle, err := suite.Pack(dir)
		require.NoError(t, err)
		return bundle.Hash
	}
	must := func(err error) { require.NoError(t, err) }
	original := hash(func(string) {})
	same := hash(func(dir string) {
		must(os.Chtimes(filepath.Join(dir, "suite.yaml"), time.Unix(1, 0), time.Unix(1, 0)))
		must(os.Chmod(filepath.Join(dir, "suite.yaml"), 0o600))
	})
	require.Equal(t, original, same, "times and owner's bits")

	changes := map[string]func(string){
		"content": func(dir string) { must(os.WriteFile(filepath.Join(dir, "data/run.sh"), []byte("echo bye\n"), 0o755)) },
		"name": func(dir string) {
			must(os.Rename(filepath.Join(dir, "data/run.sh"), filepath.Join(dir, "data/ran.sh")))
		},
		"executable": func(dir string) { must(os.Chmod(filepath.Join(dir, "data/run.sh"), 0o644)) },
		"more":       func(dir string) { must(os.WriteFile(filepath.Join(dir, "y"), nil, 0o644)) },
	}
	seen := map[string]string{original: "original"}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		h := hash(changes[name])
		require.NotContains(t, seen, h, name)
		seen[h] = name
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	t.Parallel()
	t.Run("a link", func(t *testing.T) {
		t.Parallel()
		dir := folder(t, tinyFiles())
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
		_, err := suite.Pack(dir)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, "link is a link or special file")
	})
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		dir := folder(t, tinyFiles())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "big"), nil, 0o644))
		require.NoError(t, os.Truncate(filepath.Join(dir, "big"), suite.MaxBundle))
		_, err := suite.Pack(dir)
		require.ErrorContains(t, err, "makes the suite larger than 32 MB")
	})
	t.Run("names that some systems do not tell apart", func(t *testing.T) {
		t.Parallel()
		files := tinyFiles()
		files["data/RUN.sh"] = ""
		_, err := suite.Pack(folder(t, files))
		require.ErrorContains(t, err, "are the same on some file systems")
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		_, err := suite.Pack(filepath.Join(t.TempDir(), "none"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

// archive returns a .tar.gz of headers with "x" in each file.
func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		h.Mode = 0o644
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = 1
		}
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

// manyDirectories returns a small archive that takes long to read.
func manyDirectories(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	header := archiveBytes(t, tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o755})
	for range 2*suite.MaxBundle/len(header) + 1 {
		_, err := zipped.Write(header)
		require.NoError(t, err)
	}
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

// archiveBytes returns a header as encoded in an archive.
func archiveBytes(t *testing.T, header tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, tar.NewWriter(&out).WriteHeader(&header))
	return out.Bytes()
}

func TestArchivesFromStrangers(t *testing.T) {
	t.Parallel()
	rustc, err := suite.Pack("../../suites/rustc")
	require.NoError(t, err)
	var crowd, dirs []tar.Header
	for i := range suite.MaxFiles + 1 {
		crowd = append(crowd, tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("f%d", i)})
	}
	for i := range suite.MaxFiles/30 + 1 {
		dirs = append(dirs, tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("d%d/", i) + strings.Repeat("d/", 30) + "f"})
	}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for want, data := range map[string][]byte{
		`"../outside" cannot be the name`:        archive(t, file("../outside")),
		`"/etc/passwd" cannot be the name`:       archive(t, file("/etc/passwd")),
		`"a/../../b" cannot be the name`:         archive(t, file("a/../../b")),
		`"a\\b" cannot be the name`:              archive(t, file(`a\b`)),
		`"c:x" cannot be the name`:               archive(t, file("c:x")),
		`"link" is a link or special file`:       archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc"}),
		`"hard" is a link or special file`:       archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "/etc/passwd"}),
		`"pipe" is a link or special file`:       archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}),
		"the names a and A are the same":         archive(t, file("a"), file("A")),
		"the names a and a are the same":         archive(t, file("a"), file("a")),
		"makes the suite larger than 32 MB":      archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "bomb", Size: suite.MaxBundle + 1}),
		"the suite has more than 10000 files":    archive(t, crowd...),
		"it has more than 10000 directories":     archive(t, dirs...),
		"is 33 directories deep; at most 32 are": archive(t, file(strings.Repeat("d/", 33)+"f")),
		"the archive unpacks to more than 64 MB": manyDirectories(t),
		"this is not a .tar.gz":                  []byte("hello"),
		"the archive is damaged: reading":        rustc.Archive[:len(rustc.Archive)/2],
		"the archive is damaged: ":               archive(t, file("a"))[:30],
		"its contents have the hash":             archive(t, file("a")),
	} {
		parent := t.TempDir()
		err := suite.Unpack(bytes.NewReader(data), strings.Repeat("0", 64), filepath.Join(parent, "dir"))
		require.ErrorIs(t, err, bench.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Empty(t, left, "nothing is left behind")
	}
}

func TestUnpackingTwiceIsNoProblem(t *testing.T) {
	t.Parallel()
	bundle, err := suite.Pack(folder(t, tinyFiles()))
	require.NoError(t, err)
	parent := t.TempDir()
	dir := filepath.Join(parent, "suites", bundle.Hash)

	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = suite.Unpack(bytes.NewReader(bundle.Archive), bundle.Hash, dir) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1)

	// A damaged copy is not accepted.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "run.sh"), []byte("echo other\n"), 0o755))
	err = suite.Unpack(bytes.NewReader(bundle.Archive), bundle.Hash, dir)
	require.ErrorContains(t, err, "it already has other contents")
}

func TestAChangedCopyIsNoticed(t *testing.T) {
	t.Parallel()
	bundle, err := suite.Pack(folder(t, tinyFiles()))
	require.NoError(t, err)
	for name, change := range map[string]func(dir string) error{
		"content": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "data", "run.sh"), []byte("echo other\n"), 0o755)
		},
		"more":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o644) },
		"less":   func(dir string) error { return os.Remove(filepath.Join(dir, "data", "run.sh")) },
		"mode":   func(dir string) error { return os.Chmod(filepath.Join(dir, "data", "run.sh"), 0o644) },
		"a link": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "data", "link")) },
		"all":    os.RemoveAll,
	} {
		dir := filepath.Join(t.TempDir(), "suite")
		require.NoError(t, suite.Unpack(bytes.NewReader(bundle.Archive), bundle.Hash, dir))
		require.NoError(t, suite.Verify(dir, bundle.Hash))
		require.NoError(t, change(dir))
		require.Error(t, suite.Verify(dir, bundle.Hash), name)
	}
}

func TestABundleWithoutSuiteFile(t *testing.T) {
	t.Parallel()
	bundle, err := suite.ReadBundle(bytes.NewReader(archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"})), "")
	require.NoError(t, err)
	require.Len(t, bundle.Hash, 64)
	_, err = bundle.Load()
	require.ErrorContains(t, err, "suite.yaml: no such file in the bundle")
}

func FuzzReadBundle(f *testing.F) {
	bundle, err := suite.Pack("../../suites/rustc")
	require.NoError(f, err)
	f.Add(bundle.Archive)
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		bundle, err := suite.ReadBundle(bytes.NewReader(data), "")
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		for _, name := range bundle.Files() {
			require.True(t, filepath.IsLocal(filepath.FromSlash(name)), name)
		}
		_, _ = bundle.Load()
	})
}
