package flame

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// readable returns the name of a function as in its source: demangled, if C++ or Rust mangled
// it, and without the hash that older Rust adds.
func readable(name string) string {
	name = cut(name)
	if strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "__Z") {
		// The demangler's result is bounded against names that unfold to gigabytes.
		name = cut(demangle.Filter(name, demangle.NoClones, demangle.MaxLength(10)))
	}
	if i := strings.LastIndex(name, "::h"); i > 0 && len(name) == i+19 && isHex(name[i+3:]) {
		name = name[:i]
	}
	return name
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}
