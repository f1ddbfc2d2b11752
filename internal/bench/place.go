package bench

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Place is the pool whose task queue a job waits in, or a set of collectors if only
// some can run the job.
type Place struct {
	// Pool is the pool; for a set, the largest of its collectors' pools.
	Pool
	// Set names the collectors, sorted; empty: all of the pool.
	Set []string
}

// nobody is the only member of an empty set. It cannot be a collector's name.
const nobody = "(nobody)"

// WithNobody returns the place where jobs of a pool wait if no collector can run them.
func WithNobody(p Pool) Place { return Place{Pool: p, Set: []string{nobody}} }

// Nobody reports whether the place was made by [WithNobody].
func (p Place) Nobody() bool { return len(p.Set) == 1 && p.Set[0] == nobody }

// canary is a further member of the sets from which collectors take their canaries: it
// gives them task queues of their own. It cannot be a collector's name.
const canary = "(canary)"

// ForCanaries returns the place where the canaries of some collectors of a pool wait.
func ForCanaries(p Pool, collectors ...string) Place {
	return Place{Pool: p, Set: append([]string{canary}, collectors...)}
}

// TaskQueue returns the Temporal task queue of the place: the pool's, or for a set
// bench/<target>/<size>/set-<hash of the names>. The collectors of a set may belong to
// several pools.
func (p Place) TaskQueue() string {
	if len(p.Set) == 0 {
		return p.Pool.TaskQueue()
	}
	names := slices.Sorted(slices.Values(p.Set))
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return fmt.Sprintf("bench/%s/%d/set-%s", p.Target, p.SizeClass, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// setPattern matches the last part of a set's task queue. No pool may have such a name.
var setPattern = regexp.MustCompile(`^set-[a-z2-7]{16}$`)

// IsSet reports whether a task queue belongs to a set of collectors.
func IsSet(taskQueue string) bool {
	return setPattern.MatchString(taskQueue[strings.LastIndexByte(taskQueue, '/')+1:])
}
