//go:build !unix

package machine

import (
	"errors"
	"io"
	"os"
)

// readAt reads from a place in a file. It returns 0 at its end.
func readAt(file *os.File, to []byte, at int64) (int, error) {
	n, err := file.ReadAt(to, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
