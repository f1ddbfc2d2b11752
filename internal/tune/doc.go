// Package tune reads the settings of a machine that disturb measurements, and
// changes those that it may, for as long as somebody measures.
//
// [Machine.Inspect] grades each setting and gives reason and remedy; it changes
// nothing. [Tuner.Tune] changes settings. Before the first change, the original
// values of all of them are on disk, with file and directory synced; so whatever
// ends the process, [Tuner.Restore] finds them, and [Tuner.Recover] restores what
// a killed process left half done. Originals on disk are never overwritten by
// tuned values. A restart of the machine resets every setting by itself.
//
// Everything is read and written below a root directory, "/" outside tests and
// containers. The package knows nothing of jobs, collectors or the service.
package tune
