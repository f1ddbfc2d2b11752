package artifact

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUnpackable reports a file or directory that cannot become an archive that
// [Cache] would unpack: because of links that lead out of it, devices, or
// emptiness.
var ErrUnpackable = errors.New("not fit to be an artifact")

// Pack writes a file, or everything below a directory, to w as a tar.gz that
// depends only on the content: sorted names, no times, no owners, and only the
// executable bit of the modes. A single file is archived under its base name.
// Links within the directory stay links; skip lists the base names of
// directories to leave out.
func Pack(ctx context.Context, from string, w io.Writer, skip ...string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("packing %s: %w", from, err)
	}
	root := from
	if !info.IsDir() {
		root = filepath.Dir(from)
	}
	zipped := gzip.NewWriter(w)
	p := &packer{ctx: ctx, root: root, out: tar.NewWriter(zipped), skip: map[string]bool{}, room: defaultMaxEntries}
	for _, name := range skip {
		p.skip[name] = true
	}
	return p.pack(from, info, zipped)
}

func (p *packer) pack(from string, info fs.FileInfo, zipped *gzip.Writer) (err error) {
	if info.IsDir() {
		err = filepath.WalkDir(p.root, p.add) // in the order of names
	} else {
		err = p.add(from, fs.FileInfoToDirEntry(info), nil)
	}
	if err == nil && p.files == 0 {
		err = fmt.Errorf("%w: it has no files", ErrUnpackable)
	}
	if err := errors.Join(err, p.out.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("packing %s: %w", from, err)
	}
	return nil
}

type packer struct {
	ctx   context.Context //nolint:containedctx // of one call of Pack
	root  string
	out   *tar.Writer
	skip  map[string]bool
	files int
	room  int // files, links and directories that may still be added
}

func (p *packer) add(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	name, err := filepath.Rel(p.root, path)
	if err != nil || name == "." {
		return err
	}
	if entry.IsDir() && p.skip[entry.Name()] {
		return fs.SkipDir
	}
	name = filepath.ToSlash(name)
	if p.room--; p.room < 0 {
		return fmt.Errorf("%w: it has more than %d files and directories", ErrUnpackable, defaultMaxEntries)
	}
	if parts := strings.Count(name, "/") + 1; len(name) > maxName || parts > maxDepth {
		return fmt.Errorf("%w: the path %.60s… has %d bytes and %d parts; at most %d and %d are allowed", ErrUnpackable, name, len(name), parts, maxName, maxDepth)
	}
	header := &tar.Header{Name: name, Format: tar.FormatPAX}
	switch mode := entry.Type(); {
	case mode.IsDir():
		header.Typeflag, header.Mode, header.Name = tar.TypeDir, 0o755, name+"/"
		return p.out.WriteHeader(header)
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !staysInside(name, target) {
			return fmt.Errorf("%w: the link %s leads to %s, out of the output", ErrUnpackable, name, target)
		}
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, target, 0o777
		p.files++
		return p.out.WriteHeader(header)
	case !mode.IsRegular():
		return fmt.Errorf("%w: %s is a socket, pipe or device", ErrUnpackable, name)
	}
	p.files++
	return p.file(path, header)
}

func (p *packer) file(path string, header *tar.Header) error {
	// A process left over from the build may still replace the file by a link.
	file, err := openNoFollow(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size, header.Mode = tar.TypeReg, info.Size(), 0o644
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	if err := p.out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(p.out, io.LimitReader(readerWithContext{p.ctx, file}, header.Size))
	return err
}
