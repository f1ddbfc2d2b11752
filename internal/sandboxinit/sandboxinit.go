// Package sandboxinit holds the program that becomes the init process of a sandbox. It does
// nothing but call [measure.InitMain], so that its start takes a tenth of the CPU time of
// that of the whole program, for which the whole program would do as well.
//
// 'make build' builds it before what embeds it. The package must not know what an init
// process does.
package sandboxinit

import (
	"embed"
	"runtime"
)

//go:embed all:built
var built embed.FS

// Program returns the program for this architecture; nil: it was not built.
func Program() []byte {
	program, err := built.ReadFile("built/init-" + runtime.GOARCH)
	if err != nil {
		return nil
	}
	return program
}
