//go:build !unix

package machine

import (
	"errors"
	"io"
	"os"
)

// kept is a file that stays open.
type kept struct{ *os.File }

func keep(file *os.File) *kept { return &kept{file} }

// readAt reads from a place in the file. It returns 0 at its end.
func (k *kept) readAt(to []byte, at int64) (int, error) {
	n, err := k.ReadAt(to, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
