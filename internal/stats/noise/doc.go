// Package noise models the noise of a series from its sessions: how much values differ within a session and between
// sessions, what follows for detection, and labels for noise that is not normal.
//
// A series is one metric of one test case on one hardware. [Fit] takes the last 60 undisturbed sessions; those before the last
// confirmed change must be left out. It works on logarithms if all values are positive, else in the metric's unit. The model
// can be computed again from raw values at any time.
//
// The package is pure. It knows nothing of commits, requests or the record.
package noise
