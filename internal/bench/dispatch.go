package bench

import (
	"crypto/subtle"
	"log/slog"
)

// Dispatch is the secret of one dispatch of a job, which its task carries to the
// collector and the fence demands. Formatting and logging hide it; only JSON and the
// record have it. Since histories of workflows can be read, it opens nothing without the
// token of a collector that serves the job's task queue.
type Dispatch string

// Is reports whether both are the same dispatch, in a time independent of where they
// differ. The zero value equals no dispatch, not even another zero value.
func (d Dispatch) Is(other Dispatch) bool {
	return d != "" && subtle.ConstantTimeCompare([]byte(d), []byte(other)) == 1
}

const hiddenDispatch = "(hidden)"

// String hides the secret.
func (Dispatch) String() string { return hiddenDispatch }

// GoString hides the secret.
func (Dispatch) GoString() string { return hiddenDispatch }

// LogValue hides the secret.
func (Dispatch) LogValue() slog.Value { return slog.StringValue(hiddenDispatch) }
