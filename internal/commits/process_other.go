//go:build !unix

package commits

import "os/exec"

// own leaves the command as it is: its process alone is killed.
func own(*exec.Cmd) {}
