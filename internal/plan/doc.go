// Package plan turns a request into jobs.
//
// Whoever plans reads the facts first: the request, its project's configuration and
// suite, the registered collectors, where series live and what was learned. [Facts]
// holds them, and each stage of a request is planned from them alone:
//
//	Stages                     which stages the request goes through
//	Facts.Own                  jobs for all that the request measures
//	Facts.Parent               the same for its parent, where the request is measured
//	Facts.Verify               what differs from the baseline, again and in turns with it
//	Facts.Lacking              of those the part that nobody has measured or is measuring
//	Facts.Artifacts, .Build    jobs that build what they measure
//	Commands                   jobs of a command, or of a batch of them
//	Facts.Check                whether collectors could ever run a request, at submission
//
// Two facts depend on an answer of this package and are read in between: what was learned
// of [Facts.Shapes], and the [Coverage] that [QueryOf] each planned job asks for.
//
// A job's key is made here and nowhere else, and so are its requirements towards
// collectors: whoever places a job later asks [NeedsOf] or [Needs.Requirements], and
// whoever puts another job in its place asks [Later].
//
// The package is pure: the same facts give the same jobs. It must not know how requests
// arrive, how rows are read and written, or Temporal.
package plan
