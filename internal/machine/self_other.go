//go:build !unix

package machine

import "time"

// selfTime returns the CPU time of this process; 0 if it is unknown.
func selfTime() time.Duration { return 0 }
