//go:build linux || darwin

package measure_test

import (
	"context"
	"fmt"
	"os"

	"github.com/benchloom/benchloom/internal/measure"
)

func ExampleSandbox_Run() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "example", WorkDir: dir, DisableCgroups: true})
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := sandbox.Close(); err != nil {
			panic(err)
		}
	}()
	sample, err := sandbox.Run(context.Background(), measure.Command{
		Argv: []string{"/bin/sh", "-c", "echo measured; exit 3"}, Output: os.Stdout,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(sample.Status, sample.ExitCode, sample.Wall > 0)
	// Output:
	// measured
	// exited 3 true
}

func ExampleParseCPUList() {
	cpus, err := measure.ParseCPUList("2-4,7")
	fmt.Println(len(cpus), cpus, err)
	// Output: 4 2-4,7 <nil>
}
