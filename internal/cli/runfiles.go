package cli

import (
	"io"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// RunFiles writes the files kept by a run.
func RunFiles(w io.Writer, list apiclient.RunFileList, v View) error {
	if len(list.Files) == 0 {
		return write(w, "The run has kept no files: its command names no uploads, or has not succeeded.\n")
	}
	t := NewTable(Column{Heading: "path", Flex: true}, Column{Heading: "size", Right: true}, Column{Heading: "stored"}, Column{Heading: "SHA-256", Flex: true})
	for _, f := range list.Files {
		t.Row(f.Path, humanize.IBytes(uint64(max(0, f.Size))), Ago(v.Now, f.CreatedAt), f.Digest)
	}
	return t.Write(w, v.Width)
}
