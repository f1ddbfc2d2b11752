package artifact

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"
)

var (
	errTooLarge        = errors.New("archive content exceeds its limit")
	errNothingUnpacked = errors.New("archive is empty")
)

// archiveError is an error of the archive itself.
type archiveError struct{ err error }

func (e *archiveError) Error() string { return e.err.Error() }
func (e *archiveError) Unwrap() error { return e.err }

func badArchive(format string, args ...any) error {
	return &archiveError{fmt.Errorf(format, args...)}
}

// unpacker unpacks one archive from an untrusted source. Nothing is written outside dir, and no link in it leads outside.
type unpacker struct {
	dir      string
	strip    int
	left     int64            // bytes that may still be written
	room     int              // files, links and directories that may still be made
	progress func(done int64) // bytes written so far

	root  *os.Root
	done  int64
	files int
	taken int
}

// Bounds of what an archive may hold. A Go toolchain has 17,000 files and directories.
const (
	defaultMaxEntries = 200_000
	maxName           = 1024 // bytes of a path
	maxDepth          = 64   // parts of a path
)

func (u *unpacker) unpack(ctx context.Context, archive string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	if u.root, err = os.OpenRoot(u.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.root.Close()) }()

	input := bufio.NewReaderSize(readerWithContext{ctx, file}, 1<<16)
	magic, err := input.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(input)
		if err != nil {
			return badArchive("reading gzip: %w", err)
		}
		if err := u.untar(unzipped); err != nil {
			return err
		}
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		unzipped, err := xz.NewReader(input)
		if err != nil {
			return badArchive("reading xz: %w", err)
		}
		if err := u.untar(unzipped); err != nil {
			return err
		}
	case bytes.HasPrefix(magic, []byte("PK\x03\x04")):
		if err := u.unzip(ctx, file); err != nil {
			return err
		}
	default:
		return badArchive("it begins with %q", magic)
	}
	if u.files == 0 {
		return errNothingUnpacked
	}
	return nil
}

func (u *unpacker) untar(compressed io.Reader) error {
	// Data after the end of the tar file would still be decompressed; the limit covers that, too.
	source := &sourceReader{compressed}
	for archive := tar.NewReader(source); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// The checksums of the compression follow the end of the tar file and are only verified by reading them.
			return u.drain(source)
		}
		if err != nil {
			return faultOf(err, "reading tar")
		}
		name, err := u.stripped(header.Name)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		switch header.Typeflag {
		case tar.TypeXGlobalHeader:
		case tar.TypeDir:
			err = u.mkdir(name)
		case tar.TypeReg, tar.TypeGNUSparse:
			err = u.write(name, header.FileInfo().Mode(), archive)
		case tar.TypeSymlink:
			err = u.symlink(name, header.Linkname)
		case tar.TypeLink:
			err = u.hardlink(name, header.Linkname)
		default:
			err = badArchive("%q is a device or of another unsupported type (%q)", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) unzip(ctx context.Context, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return badArchive("reading zip: %w", err)
	}
	if n := len(archive.File); n > 2*u.room { // some may be stripped, or replace earlier ones
		return fmt.Errorf("%w: it has %d entries", errTooLarge, n)
	}
	for _, entry := range archive.File {
		if err := u.unzipEntry(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) unzipEntry(ctx context.Context, entry *zip.File) error {
	name, err := u.stripped(entry.Name)
	if err != nil || name == "" {
		return err
	}
	mode := entry.Mode()
	switch {
	case mode.IsDir():
		return u.mkdir(name)
	case !mode.IsRegular() && mode.Type() != fs.ModeSymlink:
		return badArchive("%q is a device or of another unsupported type", entry.Name)
	}
	content, err := entry.Open()
	if err != nil {
		return badArchive("reading zip: %w", err)
	}
	defer content.Close()
	source := &sourceReader{readerWithContext{ctx, content}}
	if mode.IsRegular() {
		return u.write(name, mode, source)
	}
	const longestTarget = 4096
	target, err := io.ReadAll(io.LimitReader(source, longestTarget))
	if err != nil {
		return faultOf(err, "reading zip")
	}
	return u.symlink(name, string(target))
}

// stripped checks a name of the archive and removes its leading directories; it returns "" if nothing is left.
func (u *unpacker) stripped(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", badArchive("the name %q leads out of its directory", name)
	}
	parts := strings.Split(path.Clean(name), "/")
	if len(name) > maxName || len(parts) > maxDepth {
		return "", badArchive("the name %.60q… has %d bytes and %d parts; at most %d and %d are allowed", name, len(name), len(parts), maxName, maxDepth)
	}
	if len(parts) <= u.strip || parts[0] == "." {
		return "", nil
	}
	return path.Join(parts[u.strip:]...), nil
}

func (u *unpacker) mkdir(name string) error {
	missing, err := u.checkParents(name + "/.")
	if err != nil {
		return err
	}
	if err := u.take(missing); err != nil {
		return err
	}
	return u.fault(u.root.MkdirAll(name, 0o755))
}

// make prepares the path of a file or link: its parents exist and are real directories, and an earlier entry of the name is
// removed.
func (u *unpacker) make(name string) error {
	missing, err := u.checkParents(name)
	if err != nil {
		return err
	}
	if err := u.take(missing + 1); err != nil {
		return err
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return u.fault(err)
	}
	// As tar does, a later entry replaces an earlier one.
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return u.fault(err)
	}
	u.files++
	return nil
}

// take counts files, links and directories before they are made.
func (u *unpacker) take(n int) error {
	if u.taken += n; u.taken > u.room {
		return fmt.Errorf("%w: it has more than %d files and directories", errTooLarge, u.room)
	}
	return nil
}

// checkParents refuses names below a link: the check of link targets relies on names not being redirected. It counts the
// directories above name that do not exist yet.
func (u *unpacker) checkParents(name string) (missing int, err error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := u.root.Lstat(name[:i])
		if errors.Is(err, fs.ErrNotExist) {
			return strings.Count(name[i:], "/"), nil
		}
		if err != nil {
			return 0, u.fault(err)
		}
		if !info.IsDir() {
			return 0, badArchive("%q is inside %q, which is not a directory", name, name[:i])
		}
	}
	return 0, nil
}

func (u *unpacker) write(name string, mode fs.FileMode, content io.Reader) (err error) {
	if err := u.make(name); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return u.fault(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err := io.Copy(file, io.LimitReader(content, u.left+1))
	u.done += n
	if u.left -= n; u.left < 0 {
		return errTooLarge
	}
	u.progress(u.done)
	return faultOf(err, "reading "+name)
}

// symlink allows targets that climb with leading ".." only, and not above the directory: such a target stays inside,
// whatever other links are on its path.
func (u *unpacker) symlink(name, target string) error {
	if !staysInside(name, target) {
		return badArchive("the link %q leads to %q, out of its directory", name, target)
	}
	if err := u.make(name); err != nil {
		return err
	}
	return u.fault(u.root.Symlink(target, name))
}

// staysInside reports whether the target of a link leads below the directory that the link's name is relative to. Both are
// slash-separated.
func staysInside(name, target string) bool {
	inside := target != "" && !path.IsAbs(target) && !filepath.IsAbs(target) && filepath.VolumeName(target) == "" && !strings.Contains(target, `\`)
	depth, climbing := strings.Count(name, "/"), true
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." {
			depth--
			inside = inside && climbing && depth >= 0
		} else if part != "" && part != "." {
			climbing = false
		}
	}
	return inside
}

func (u *unpacker) hardlink(name, target string) error {
	existing, err := u.stripped(target)
	if err != nil {
		return err
	}
	if _, err := u.checkParents(existing); err != nil {
		return err
	}
	// A hard link to a symbolic link would resolve differently.
	if info, err := u.root.Lstat(existing); existing == "" || err != nil || !info.Mode().IsRegular() {
		return badArchive("the hard link %q is one of %q, which is not a file of the archive", name, target)
	}
	if existing == name {
		return nil
	}
	if err := u.make(name); err != nil {
		return err
	}
	return u.fault(u.root.Link(existing, name))
}

// drain reads the compressed data to its end, within the limit.
func (u *unpacker) drain(source io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(source, u.left+1))
	if n > u.left {
		return errTooLarge
	}
	return faultOf(err, "reading the end of the archive")
}

// fault classifies an error of the file system: a full disk or missing permissions are the machine's; anything else comes
// from names in the archive, such as one that is both a file and a directory.
func (u *unpacker) fault(err error) error {
	if err == nil || isDiskFull(err) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &archiveError{err}
}

// sourceReader marks errors of decompression, to distinguish them from errors of the written file.
type sourceReader struct{ io.Reader }

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, faultOf(err, "decompressing")
}

// faultOf attributes a read error to the archive, unless it is an error of the machine or the context has ended.
func faultOf(err error, doing string) error {
	if err == nil {
		return nil
	}
	_, isArchive := errors.AsType[*archiveError](err)
	_, isFile := errors.AsType[*fs.PathError](err)
	_, isContext := errors.AsType[*contextError](err)
	if isArchive || isFile || isContext {
		return err
	}
	return badArchive("%s: %w", doing, err)
}

// readerWithContext stops a long decompression when its context ends.
type readerWithContext struct {
	ctx    context.Context
	reader io.Reader
}

type contextError struct{ err error }

func (e *contextError) Error() string { return e.err.Error() }
func (e *contextError) Unwrap() error { return e.err }

func (r readerWithContext) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, &contextError{context.Cause(r.ctx)}
	}
	return r.reader.Read(p)
}
