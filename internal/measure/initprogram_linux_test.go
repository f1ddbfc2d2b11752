package measure_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

// A sandbox starts the program that it was given as its init process, from memory; without
// one, or with nothing, the whole program.
func TestASandboxUsesTheGivenInitProcess(t *testing.T) {
	t.Parallel()
	if sandbox, ok := isolated(t, measure.SandboxConfig{}); !ok {
		require.NotEmpty(t, sandbox.Unenforced())
		return
	}
	for given, want := range map[string]string{"itself": "memfd:benchloom-sandbox-init", "nothing": ".test"} {
		helper := exec.CommandContext(t.Context(), "/proc/self/exe", given, t.TempDir())
		helper.Env = append(os.Environ(), helperVariable+"=init")
		out, err := helper.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), want, given)
	}
}

// tellInit runs a command with a given init process, and prints the program of the init
// process that is ready for the next.
func tellInit(given, dir string) error {
	measure.UseInit(func() []byte {
		if given == "nothing" {
			return nil
		}
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			panic(err)
		}
		return self
	})
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "init-" + strconv.Itoa(os.Getpid()), WorkDir: dir})
	if err != nil {
		return err
	}
	children, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, path := range children {
		name, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(name), "benchloom-sandbox-init") {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		program, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if err != nil {
			return err
		}
		fmt.Println(program)
	}
	return sandbox.Close()
}
