//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package artifact

import (
	"errors"
	"os"
)

func tryLockFile(*os.File, bool) (bool, error) {
	return false, errors.New("locking files is not supported on this system")
}
