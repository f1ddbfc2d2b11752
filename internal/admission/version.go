package admission

import (
	"cmp"
	"slices"
	"strings"
)

// CompareVersions compares the names of two releases as versions: -1 if a comes before b, +1 if after, 0 only if
// they are the same string. It takes any string and is a total order.
//
// A name has a prefix without digits (`nightly-`, `go`, `v`, or nothing), numbers separated by dots, and optionally a
// pre-release, which comes before its release. So 1.9.0 < 1.10.0, go1.25rc1 < go1.25rc2 < go1.25,
// v2.0.0-alpha.9 < v2.0.0-alpha.10, nightly-2025-12-31 < nightly-2026-01-01. Missing numbers are zero (1.9 and 1.9.0
// are neighbours). A `v` or `go` before a digit, letter case, and everything after a `+` (build metadata) are ignored.
// Other prefixes keep their releases together, in alphabetical order. Names that agree in all this are compared as
// strings.
//
// The precedence of pre-releases follows Semantic Versioning 2.0.0 item 11, except that digits inside an identifier
// count as a number (rc9 < rc10), as in the names of Go's releases.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	x, y := parseVersion(a), parseVersion(b)
	if c := cmp.Or(
		strings.Compare(x.prefix, y.prefix),
		slices.CompareFunc(x.numbers, y.numbers, compareNumbers),
		comparePreReleases(x.preRelease, y.preRelease),
	); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// version is a parsed name. Numbers are kept as digits without leading zeros, as they may exceed any integer type.
type version struct {
	prefix     string   // lower case, without trailing separators
	numbers    []string // without trailing zeros
	preRelease []string // each all digits or free of digits; empty for a release
}

func parseVersion(name string) version {
	name, _, _ = strings.Cut(strings.ToLower(name), "+")
	start := strings.IndexFunc(name, isDigit)
	if start < 0 {
		return version{prefix: strings.TrimRight(name, separators)}
	}
	v := version{prefix: strings.TrimRight(name[:start], separators)}
	if name[:start] == "v" || name[:start] == "go" {
		v.prefix = ""
	}
	rest := name[start:]
	for {
		var digits string
		digits, rest = cutNumber(rest)
		v.numbers = append(v.numbers, digits)
		if len(rest) < 2 || rest[0] != '.' || !isDigit(rune(rest[1])) {
			break
		}
		rest = rest[1:]
	}
	for len(v.numbers) > 0 && v.numbers[len(v.numbers)-1] == "" {
		v.numbers = v.numbers[:len(v.numbers)-1]
	}
	for rest = strings.TrimLeft(rest, separators); rest != ""; rest = strings.TrimLeft(rest, separators) {
		var identifier string
		if isDigit(rune(rest[0])) {
			identifier, rest = cutNumber(rest)
			if identifier == "" {
				identifier = "0"
			}
		} else {
			end := strings.IndexAny(rest, separators+"0123456789")
			if end < 0 {
				end = len(rest)
			}
			identifier, rest = rest[:end], rest[end:]
		}
		v.preRelease = append(v.preRelease, identifier)
	}
	return v
}

// separators separate identifiers and have no meaning themselves.
const separators = ".-_ "

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// cutNumber returns the digits at the start of s without leading zeros (empty for zero), and the rest of s.
func cutNumber(s string) (digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return strings.TrimLeft(s[:len(s)-len(rest)], "0"), rest
}

func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func comparePreReleases(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a)) // the release comes after its pre-releases
	}
	return slices.CompareFunc(a, b, func(x, y string) int {
		numberX, numberY := isDigit(rune(x[0])), isDigit(rune(y[0]))
		switch {
		case numberX && numberY:
			return compareNumbers(x, y)
		case numberX:
			return -1
		case numberY:
			return 1
		default:
			return strings.Compare(x, y)
		}
	})
}
