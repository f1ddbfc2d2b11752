package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
)

// PackAtMost packs a directory with at most that many files, links and directories.
func PackAtMost(ctx context.Context, dir string, most int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(io.Discard)
	return (&packer{ctx: ctx, root: dir, out: tar.NewWriter(zipped), room: most}).pack(dir, info, zipped)
}

// UnpackTo unpacks an archive, a zip file or an uncompressed tar file, into dir as the provider URL does.
func UnpackTo(ctx context.Context, archive []byte, dir string) error {
	if !bytes.HasPrefix(archive, []byte("PK")) {
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.NoCompression)
		_, _ = w.Write(archive)
		_ = w.Close()
		archive = zipped.Bytes()
	}
	scratch, err := os.MkdirTemp("", "benchloom-unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	file := filepath.Join(scratch, "archive")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		return err
	}
	return (&unpacker{dir: dir, left: 1 << 20, room: defaultMaxEntries, progress: func(int64) {}}).unpack(ctx, file)
}
