package artifact

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncTree makes everything below dir durable. One syncfs is far cheaper than an fsync for each of a toolchain's ten
// thousand files, and leaves no write-back that would disturb the following measurement.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("syncing the file system of %s: %w", dir, err)
	}
	return nil
}
