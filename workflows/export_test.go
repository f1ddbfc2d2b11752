package workflows

// ChangeLooks is the change that tests play an earlier version of.
const ChangeLooks = changeLooks
