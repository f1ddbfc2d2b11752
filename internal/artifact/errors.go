package artifact

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
)

// Kind classifies errors by what a caller can do about them.
type Kind int

const (
	// Unclassified is an error whose reason is not known, such as missing permissions in the cache directory.
	Unclassified Kind = iota
	// Invalid means that the request itself can never work: an impossible tag, a missing parameter. Permanent.
	Invalid
	// NotFound means that no such artifact exists, or that its source refuses access. Permanent.
	NotFound
	// Corrupt means that the fetched content is wrong: checksum mismatch, unusable archive. Permanent, so that a person
	// looks at a tampered source.
	Corrupt
	// Unavailable means that the source could not be reached or answered with a server error. Worth a retry.
	Unavailable
	// ToolMissing means that this machine lacks a program that the provider needs. Other machines may have it.
	ToolMissing
	// DiskFull means that the cache's file system is full. Other machines may have space.
	DiskFull
	// Cancelled means that the caller's context ended first.
	Cancelled
)

// String returns the name of the kind in lower-case words.
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case NotFound:
		return "not found"
	case Corrupt:
		return "corrupt"
	case Unavailable:
		return "unavailable"
	case ToolMissing:
		return "tool missing"
	case DiskFull:
		return "disk full"
	case Cancelled:
		return "cancelled"
	default:
		return "unclassified"
	}
}

// Permanent reports whether the same request would fail the same way on every machine and at any time.
func (k Kind) Permanent() bool { return k == Invalid || k == NotFound || k == Corrupt }

// Error is a failure whose reason is known. Its text is for people: the thing, the reason, the remedy.
type Error struct {
	Kind     Kind
	Artifact string // the requested artifact, such as "go 1.99.7 for linux/amd64"
	Reason   string // such as "not found by the module proxy"
	Remedy   string // may be empty
	Err      error  // the cause; may be nil
}

// Error joins artifact, reason, cause and remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Artifact + ": " + e.Reason)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of any error returned by this package or a [Provider]. A nil error is [Unclassified].
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	case isDiskFull(err):
		return DiskFull
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Unavailable
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return Unavailable
	}
	return Unclassified
}

func isDiskFull(err error) bool {
	const windowsDiskFull = syscall.Errno(112) // ERROR_DISK_FULL; the number means something else on other systems
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		runtime.GOOS == "windows" && errors.Is(err, windowsDiskFull)
}
