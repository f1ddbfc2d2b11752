package suite

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// MaxBundle limits the size of a bundle, packed and unpacked, in bytes.
const MaxBundle = 32 << 20

// maxDepth limits the directories above a file.
const maxDepth = 32

// Bundle is a suite's folder as one file.
type Bundle struct {
	// Hash identifies the contents: SHA-256 over the sorted names, executable
	// bits and contents of all files, in hexadecimal. It does not depend on how
	// they are packed.
	Hash string
	// Archive is a .tar.gz of the files.
	Archive []byte

	files map[string]bundledFile
}

type bundledFile struct {
	data       []byte
	executable bool
}

// Load reads and checks the suite in the bundle; see [Load].
func (b Bundle) Load() (*Suite, error) {
	files := fileList{}
	for name := range b.files {
		files.add(name)
	}
	if _, ok := b.files[FileName]; !ok {
		return nil, &Error{Problems: []Problem{{File: FileName, Message: "no such file in the bundle"}}}
	}
	return load(b.files[FileName].data, files)
}

// Files returns the names of the bundle's files, sorted.
func (b Bundle) Files() []string { return slices.Sorted(maps.Keys(b.files)) }

// Pack packs a folder into a bundle. Files of version control and desktops are
// left out; symbolic links, special files and more than [MaxBundle] are
// refused.
func Pack(dir string) (Bundle, error) {
	files, err := readFolder(dir)
	if err != nil {
		return Bundle{}, fmt.Errorf("packing the suite in %s: %w", dir, err)
	}
	archive, err := archiveOf(files)
	if err != nil {
		return Bundle{}, fmt.Errorf("packing the suite in %s: %w", dir, err)
	}
	return Bundle{Hash: hashOf(files), Archive: archive, files: files}, nil
}

func readFolder(dir string) (map[string]bundledFile, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	collected := collection{files: map[string]bundledFile{}}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ignored(path.Base(name)) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		if !entry.Type().IsRegular() {
			return invalidBundle("%s is a link or special file; a suite has regular files only: copy what it points to", name)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f, err := root.Open(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		defer f.Close()
		return collected.read(name, f, info.Mode())
	})
	return collected.files, err
}

// collection collects files within the limits of a bundle.
type collection struct {
	files map[string]bundledFile
	// lower holds the names in lower case: some file systems ignore case.
	lower map[string]string
	// dirs holds the directories above the files.
	dirs map[string]bool
	size int64
}

func (c *collection) read(name string, r io.Reader, mode fs.FileMode) error {
	if err := checkFileName(name); err != nil {
		return err
	}
	if c.lower == nil {
		c.lower, c.dirs = map[string]string{}, map[string]bool{}
	}
	for dir := path.Dir(name); dir != "." && !c.dirs[dir]; dir = path.Dir(dir) {
		c.dirs[dir] = true
	}
	if len(c.dirs) > MaxFiles {
		return invalidBundle("it has more than %d directories; remove what benchmarks do not need", MaxFiles)
	}
	if other, twice := c.lower[strings.ToLower(name)]; twice {
		return invalidBundle("the names %s and %s are the same on some file systems", other, name)
	}
	c.lower[strings.ToLower(name)] = name
	if len(c.files) >= MaxFiles {
		return tooMany(name)
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxBundle-c.size+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if c.size += int64(len(data)); c.size > MaxBundle {
		return invalidBundle("%s makes the suite larger than %d MB; fetch large inputs in a prepare step instead", name, MaxBundle>>20)
	}
	c.files[name] = bundledFile{data: data, executable: mode.Perm()&0o111 != 0}
	return nil
}

// checkFileName accepts names that mean the same file on all systems.
func checkFileName(name string) error {
	if !fs.ValidPath(name) || name == "." || len(name) > 512 || strings.ContainsAny(name, "\\:*?\"<>|") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalidBundle("%q cannot be the name of a suite's file: use a plain relative path", name)
	}
	if depth := strings.Count(name, "/"); depth > maxDepth {
		return invalidBundle("%.60s… is %d directories deep; at most %d are allowed", name, depth, maxDepth)
	}
	return nil
}

func invalidBundle(format string, args ...any) error {
	return fmt.Errorf("%w: suite bundle: %s", bench.ErrInvalid, fmt.Sprintf(format, args...))
}

// hashOf returns the hash of files. Every part is preceded by its length, so
// that different files never produce the same bytes.
func hashOf(files map[string]bundledFile) string {
	h := sha256.New()
	part := func(data []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		h.Write(length[:])
		h.Write(data)
	}
	part([]byte("benchloom suite 1"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		part([]byte(name))
		if f.executable {
			part([]byte("x"))
		} else {
			part(nil)
		}
		part(f.data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func archiveOf(files map[string]bundledFile) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f.data)), Mode: int64(f.mode()), Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	if out.Len() > MaxBundle {
		return nil, invalidBundle("it is larger than %d MB; fetch large inputs in a prepare step instead", MaxBundle>>20)
	}
	return out.Bytes(), nil
}

func (f bundledFile) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// ReadBundle reads an archive and verifies its content hash; an empty hash is
// computed instead.
func ReadBundle(archive io.Reader, hash string) (Bundle, error) {
	packed, err := io.ReadAll(io.LimitReader(archive, MaxBundle+1))
	if err != nil {
		return Bundle{}, fmt.Errorf("reading the suite bundle: %w", err)
	}
	if len(packed) > MaxBundle {
		return Bundle{}, invalidBundle("the archive is larger than %d MB", MaxBundle>>20)
	}
	files, err := readArchive(packed)
	if err != nil {
		return Bundle{}, err
	}
	found := hashOf(files)
	if hash != "" && found != hash {
		return Bundle{}, invalidBundle("its contents have the hash %s, not %s; fetch it again", found, hash)
	}
	return Bundle{Hash: found, Archive: packed, files: files}, nil
}

func readArchive(packed []byte) (map[string]bundledFile, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, invalidBundle("this is not a .tar.gz file: %v", err)
	}
	collected := collection{files: map[string]bundledFile{}}
	// Headers and padding add to the contents.
	limited := &io.LimitedReader{R: zipped, N: 2 * MaxBundle}
	r := tar.NewReader(limited)
	for {
		header, err := r.Next()
		if limited.N <= 0 {
			return nil, invalidBundle("the archive unpacks to more than %d MB", 2*MaxBundle>>20)
		}
		if errors.Is(err, io.EOF) {
			return collected.files, nil
		}
		if err != nil {
			return nil, invalidBundle("the archive is damaged: %v", err)
		}
		switch header.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
			err := collected.read(strings.TrimPrefix(header.Name, "./"), r, header.FileInfo().Mode())
			if err != nil && !errors.Is(err, bench.ErrInvalid) {
				err = invalidBundle("the archive is damaged: %v", err)
			}
			if err != nil {
				return nil, err
			}
		default:
			return nil, invalidBundle("%q is a link or special file; a suite has regular files only", header.Name)
		}
	}
}

// Verify returns an error unless a directory has the files of the bundle with this hash,
// as [Unpack] writes them.
func Verify(dir, hash string) error {
	files, err := readFolder(dir)
	if err != nil {
		return fmt.Errorf("verifying the suite in %s: %w", dir, err)
	}
	if found := hashOf(files); found != hash {
		return fmt.Errorf("the suite in %s was changed: its hash is %s, not %s", dir, found, hash)
	}
	return nil
}

// Unpack writes the contents of an archive to the directory dir atomically. An
// existing directory with the same contents is left as it is; other contents
// are an error.
func Unpack(archive io.Reader, hash, dir string) error {
	bundle, err := ReadBundle(archive, hash)
	if err != nil {
		return err
	}
	if err := bundle.unpack(dir); err != nil {
		return fmt.Errorf("unpacking the suite to %s: %w", dir, err)
	}
	return nil
}

func (b Bundle) unpack(dir string) error {
	if done, err := b.unpacked(dir); done || err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := b.write(temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		// Another process may have unpacked the same bundle meanwhile.
		if done, _ := b.unpacked(dir); done {
			return nil
		}
		return err
	}
	return nil
}

func (b Bundle) unpacked(dir string) (bool, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	files, err := readFolder(dir)
	if err != nil {
		return false, err
	}
	if found := hashOf(files); found != b.Hash {
		return false, fmt.Errorf("it already has other contents (hash %s, not %s); remove it", found, b.Hash)
	}
	return true, nil
}

func (b Bundle) write(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range b.Files() {
		file := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		f := b.files[name]
		if err := root.WriteFile(file, f.data, f.mode()); err != nil {
			return err
		}
	}
	return nil
}
