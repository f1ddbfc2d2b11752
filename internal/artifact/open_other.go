//go:build !unix

package artifact

import "os"

// openNoFollow opens a file for reading; this system has no safer way.
func openNoFollow(path string) (*os.File, error) { return os.Open(path) }
