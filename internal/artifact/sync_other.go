//go:build !linux

package artifact

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// syncTree makes the files below dir durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		// Windows refuses to sync a file that was opened for reading; the marker file is still synced.
		if err := file.Sync(); err != nil && runtime.GOOS != "windows" {
			return err
		}
		return nil
	})
}
