//go:build !linux && !darwin

package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

var errNotSupported = fmt.Errorf("running a stand-alone installation: %w on this system, only on Linux and macOS", errors.ErrUnsupported)

func supported() error                        { return errNotSupported }
func signalProcess(int, syscall.Signal) error { return errNotSupported }
func killGroup(int)                           {}
func ownerOf(os.FileInfo) (uid, gid int)      { return -1, -1 }
func startIdentity(int) (string, error)       { return "", errNotSupported }
func workingDir(int) (string, error)          { return "", errNotSupported }
func startAs(Scheduling, *exec.Cmd) error     { return errNotSupported }
func waitUnreaped(int)                        {}
func processAttributes(account, syscall.Signal) (*syscall.SysProcAttr, error) {
	return nil, errNotSupported
}

const canMapAccounts = false
