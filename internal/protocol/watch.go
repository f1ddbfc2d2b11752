package protocol

// WatchInput starts a Watch workflow: one look at a project's commits.
type WatchInput struct{ Project string }

// WatchStatus answers the status query of a Watch workflow.
type WatchStatus struct {
	Project string
	Phase   WatchPhase
	Result  WatchResult
}

// WatchResult is the result of one look at a project's commits.
type WatchResult struct {
	// Repository and Branch name the source; empty: the project has none any more,
	// and its Schedule is gone.
	Repository string
	Branch     string
	// Head is the branch's newest commit; empty: the repository is empty.
	Head string
	// Recorded is the number of commits that were new to the record.
	Recorded int
	// Requested lists the tags that this look requested, at most a hundred;
	// Requests is their number.
	Requested []string
	Requests  int
	// Left is the number of commits that a rewrite removed from the branch.
	Left int
	// Definitions is the content hash of the graph templates that the project was given;
	// empty: they have not changed.
	Definitions string `json:",omitempty"`
	// Failed gives the reason why the source could not be read; empty: it was read.
	Failed string
	// Remarks are notes for people.
	Remarks []string
}
