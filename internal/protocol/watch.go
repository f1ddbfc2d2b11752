package protocol

// WatchInput starts a Watch workflow: one look at a project's commits.
type WatchInput struct{ Project string }

// WatchStatus answers the status query of a Watch workflow.
type WatchStatus struct {
	Project string
	Phase   WatchPhase
	Result  WatchResult
}

// WatchResult is what a look at a project's commits has found and done.
type WatchResult struct {
	// Repository and Branch are what was looked at; empty: the project has no
	// source any more, and its Schedule is gone.
	Repository string
	Branch     string
	// Head is the branch's newest commit; empty: the repository is empty.
	Head string
	// Recorded commits are new to the record.
	Recorded int
	// Requested are the tags of the commits and releases that were requested by
	// this look, at most a hundred of them; Requests is their number.
	Requested []string
	Requests  int
	// Left is how many commits are no longer on the branch, which was rewritten.
	Left int
	// Failed is why the source could not be read; empty: it could.
	Failed string
	// Remarks are what a person should know of.
	Remarks []string
}
