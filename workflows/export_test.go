package workflows

// ChangeLooks is the change that tests play an earlier version of.
const ChangeLooks = changeLooks

// RevisionOf reads the revision in a worker's name.
func RevisionOf(name string) int { return revisionOf(name) }
