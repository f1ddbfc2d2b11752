//go:build !unix

package measure

import "os"

// RemoveTree removes a directory like [os.RemoveAll].
func RemoveTree(dir string) error { return os.RemoveAll(dir) }
