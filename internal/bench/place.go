package bench

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Place is where a job waits: in the task queue of a pool, or of a set of
// collectors, for a job that only some can run.
type Place struct {
	// Pool is the pool; for a set, that of those of its collectors which is the
	// largest.
	Pool
	// Set are the names of the collectors, sorted; empty: all of the pool.
	Set []string
}

// nobody stands for the collectors of a set that has none: it is no collector's
// name.
const nobody = "(nobody)"

// WithNobody is where jobs of a pool wait that none of its collectors can run.
func WithNobody(p Pool) Place { return Place{Pool: p, Set: []string{nobody}} }

// Nobody tells whether it is such a place.
func (p Place) Nobody() bool { return len(p.Set) == 1 && p.Set[0] == nobody }

// TaskQueue is the Temporal task queue of the place: the pool's, or
// bench/<target>/<size>/set-<hash of the names>, whose collectors may be of
// several pools.
func (p Place) TaskQueue() string {
	if len(p.Set) == 0 {
		return p.Pool.TaskQueue()
	}
	names := slices.Sorted(slices.Values(p.Set))
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return fmt.Sprintf("bench/%s/%d/set-%s", p.Target, p.SizeClass, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// setPattern is the last part of a set's task queue: no pool may be called so.
var setPattern = regexp.MustCompile(`^set-[a-z2-7]{16}$`)

// IsSet tells whether a task queue is that of a set of collectors.
func IsSet(taskQueue string) bool {
	return setPattern.MatchString(taskQueue[strings.LastIndexByte(taskQueue, '/')+1:])
}
