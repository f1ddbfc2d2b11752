package bench

import (
	"fmt"
	"time"
)

// AffinityWait is the default time that a job waits for collectors with its caches:
// roughly the longest time that fetching a cache takes.
const AffinityWait = 30 * time.Second

// NoAffinity, as a project's affinity_wait, means that its jobs wait for no caches.
const NoAffinity = "never"

// maxAffinityWait bounds the wait: a longer one should be a constraint on machines.
const maxAffinityWait = 24 * time.Hour

// Affinity returns how long the project's jobs wait for collectors that have their
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

// Narrowed returns the project's constraints combined with those of a request or a
// job; own may be nil. Caches are left out if the project's jobs do not wait for them.
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
