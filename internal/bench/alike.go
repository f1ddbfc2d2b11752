package bench

import (
	"regexp"
	"strings"
)

var (
	hashes  = regexp.MustCompile(`[0-9a-f]{7,}`)
	numbers = regexp.MustCompile(`[0-9]+`)
)

// FailedAlike reports whether test cases of two artifacts failed in the same way: with
// errors of the same kind, whose messages are equal but for the artifacts' tags, numbers
// and hashes. Failures of the infrastructure, cancellations and jobs
// not taken are never alike.
func FailedAlike(tagA string, a RunError, tagB string, b RunError) bool {
	if a.Kind != b.Kind || a.Kind == FailInfrastructure || a.Kind == FailCancelled || a.Kind == FailNotTaken {
		return false
	}
	return pattern(tagA, a.Message) == pattern(tagB, b.Message)
}

// pattern returns a message without the parts that differ between artifacts.
func pattern(tag, message string) string {
	if tag != "" {
		message = strings.ReplaceAll(message, tag, "TAG")
	}
	return numbers.ReplaceAllString(hashes.ReplaceAllString(message, "HASH"), "N")
}
