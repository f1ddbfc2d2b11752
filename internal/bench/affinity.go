package bench

import (
	"fmt"
	"time"
)

// AffinityWait is for how long a job waits for collectors that have its caches,
// where a project does not say: what fetching a cache costs at most, roughly.
const AffinityWait = 30 * time.Second

// NoAffinity is how a project says that its jobs wait for no caches.
const NoAffinity = "never"

// maxAffinityWait bounds the wait: who wants longer means machines.
const maxAffinityWait = 24 * time.Hour

// Affinity is for how long the project's jobs wait for collectors that have their
// caches; 0: not at all.
func (c ProjectConfig) Affinity() time.Duration {
	switch c.AffinityWait {
	case "":
		return AffinityWait
	case NoAffinity:
		return 0
	}
	d, err := time.ParseDuration(c.AffinityWait)
	if err != nil {
		return AffinityWait // refused by Check
	}
	return d
}

// Narrowed are the constraints of the project's jobs together with those of a
// request or a job of its own; nil: it has none. Caches are left out where nobody
// waits for them.
func (c ProjectConfig) Narrowed(own *Constraints) (Constraints, error) {
	all, err := c.Constraints.Read()
	if err == nil && own != nil {
		all, err = all.And(*own)
	}
	if c.Affinity() == 0 {
		all.CacheDirs = nil
	}
	return all, err
}

func (c ProjectConfig) checkPlacement() error {
	if _, err := c.Constraints.Read(); err != nil {
		return fmt.Errorf("constraints: %w", err)
	}
	if c.AffinityWait == "" || c.AffinityWait == NoAffinity {
		return nil
	}
	d, err := time.ParseDuration(c.AffinityWait)
	if err != nil || d < time.Second || d > maxAffinityWait {
		return invalid("affinity_wait", c.AffinityWait, fmt.Sprintf("use a duration from 1s to 24h such as 30s, %s, or leave it out for %s", NoAffinity, AffinityWait))
	}
	return nil
}
