package artifact

import (
	"fmt"
	"runtime"
	"strings"
)

// GoPlatform is an operating system and architecture as Go names them.
type GoPlatform struct {
	OS   string // GOOS
	Arch string // GOARCH
}

// String returns the platform as "linux/amd64".
func (p GoPlatform) String() string { return p.OS + "/" + p.Arch }

func (p GoPlatform) isHost() bool { return p.OS == runtime.GOOS && p.Arch == runtime.GOARCH }

// goArchs maps the first part of a target tuple to GOARCH. The names are those of LLVM and rustc.
var goArchs = map[string]string{
	"x86_64": "amd64", "amd64": "amd64",
	"aarch64": "arm64", "arm64": "arm64", "arm64e": "arm64",
	"i386": "386", "i586": "386", "i686": "386",
	"arm": "arm", "armv6": "arm", "armv7": "arm", "armv7l": "arm",
	"riscv64": "riscv64", "riscv64gc": "riscv64",
	"powerpc64": "ppc64", "powerpc64le": "ppc64le",
	"s390x": "s390x", "loongarch64": "loong64",
}

// ParseGoPlatform maps a target tuple, such as "x86_64-unknown-linux-gnu" or "aarch64-apple-darwin", to the platform. It
// also accepts Go's own form, "linux/amd64"; an empty target means this machine.
func ParseGoPlatform(target string) (GoPlatform, error) {
	if target == "" {
		return GoPlatform{runtime.GOOS, runtime.GOARCH}, nil
	}
	if goos, goarch, ok := strings.Cut(target, "/"); ok {
		if isWord(goos) && isWord(goarch) {
			return GoPlatform{goos, goarch}, nil
		}
		return GoPlatform{}, fmt.Errorf("target %q: not of the form os/arch", target)
	}
	first, rest, _ := strings.Cut(target, "-")
	arch, ok := goArchs[first]
	if !ok {
		return GoPlatform{}, fmt.Errorf("target %q: Go has no architecture for %q", target, first)
	}
	for part := range strings.SplitSeq(rest, "-") {
		for _, os := range []string{"linux", "darwin", "windows", "freebsd", "netbsd", "openbsd"} {
			if strings.HasPrefix(part, os) { // a version may follow: "darwin23"
				return GoPlatform{os, arch}, nil
			}
		}
	}
	return GoPlatform{}, fmt.Errorf("target %q: names no operating system that Go has toolchains for", target)
}

// isWord reports whether s is free of the separators of module versions and paths.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
}
