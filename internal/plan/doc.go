// Package plan turns a request into jobs.
//
// Callers read the facts first: the request, its project's configuration and suite, the
// registered collectors, the size classes of series, and learned sizes. [Facts] holds
// them, and each stage of a request is planned from them alone:
//
//	Stages                     lists the stages of the request
//	Facts.Own                  plans jobs for the request's own artifact
//	Facts.Parent               plans jobs for its parent, where the request is measured
//	Facts.Look                 measures suspects again, in turns with the baseline
//	Facts.Uncovered            keeps the part that is not measured yet
//	Facts.Artifacts, .Build    plan the jobs that build artifacts
//	NodeRequest, .NodeJobs     plan the jobs of a node of a graph from a template
//	Commands                   plans the jobs of a command or a batch
//	Facts.Check                refuses a request that no collector can run, at submission
//
// Two facts depend on an answer of this package and are read in between: the learned
// sizes of [Facts.Shapes], and the [Coverage] for the [QueryOf] of each planned job.
//
// A job's key and its requirements for collectors are made only here: code that places a
// job later uses [NeedsOf] or [Needs.Requirements], and code that replaces one by
// another uses [Later].
//
// The package is pure: the same facts give the same jobs. It must not know how requests
// arrive, how rows are read and written, or Temporal.
package plan
