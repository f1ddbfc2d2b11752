//go:build !linux

package main

import (
	"errors"
	"os"
)

// forget cannot take a file out of the page cache here.
func forget(*os.File) error { return errors.ErrUnsupported }
