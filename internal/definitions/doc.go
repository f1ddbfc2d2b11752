// Package definitions reads a definitions folder and expands its templates into graphs.
//
//	branches.yaml     switches, and what each branch sets, allows and uses
//	graphs/NAME.yaml  graph templates: nodes, loops over lists, conditions
//	jobs/NAME.yaml    job templates: a job before its parameters are filled in
//
// A folder has one content hash. [Read] reads it strictly: an unknown key, type or variable
// is a [Problem] with file, line and column. [Folder.Expand] fills in parameters; the same
// folder, branch and parameters give the same graph, byte for byte. [Folder.Check] expands
// every template on every branch, [Diff] tells what changes between two folders.
//
// Conditions are written in CEL. They know no clock and no function with an effect; their
// cost is limited for each one and for each expansion, and a context interrupts them.
//
// The package is pure: files come in as an [fs.FS]. It must not know where folders come
// from, nor how graphs are recorded or run.
package definitions
