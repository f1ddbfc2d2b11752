package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Watch looks once at a project's commits; its Schedule starts the next look. A
// source that cannot be read is a result, not a failure: the record says since when,
// and nothing waits for it.
func Watch(ctx workflow.Context, in protocol.WatchInput) (protocol.WatchResult, error) {
	status := protocol.WatchStatus{Project: in.Project, Phase: protocol.WatchInProgress}
	if err := workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.WatchStatus, error) { return status, nil }); err != nil {
		return status.Result, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrProject.ValueSet(in.Project), protocol.AttrState.ValueSet(string(status.Phase))); err != nil {
		return status.Result, err
	}
	if err := call(ctx, watchActivity(), protocol.WatchCommits, in, &status.Result); err != nil {
		return status.Result, err
	}
	status.Phase = protocol.WatchCompleted
	if status.Result.Failed != "" {
		status.Phase = protocol.WatchFailing
	}
	workflow.SetCurrentDetails(ctx, watchDetails(status))
	return status.Result, workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(status.Phase)))
}

func watchDetails(s protocol.WatchStatus) string {
	var b page
	r := s.Result
	if r.Repository == "" {
		b.addf("**%s** has no commit source any more\n", s.Project)
		return b.String()
	}
	b.addf("commits of **%s**\n\n| repository | `%s` |\n|---|---|\n| branch | `%s` |\n", s.Project, r.Repository, r.Branch)
	if r.Failed != "" {
		b.addf("\nIt cannot be read: %s\n", r.Failed)
	} else {
		b.addf("| head | `%s` |\n| new commits | %d |\n| requests made | %d |\n", r.Head, r.Recorded, r.Requests)
	}
	if r.Left > 0 {
		b.addf("| no longer on the branch | %d |\n", r.Left)
	}
	if len(r.Requested) > 0 {
		b.addf("\nRequested: %s\n", strings.Join(r.Requested, ", "))
	}
	for _, remark := range r.Remarks {
		b.addf("\n%s\n", remark)
	}
	b.addf("\n`benchloom project commits %s`\n", s.Project)
	return b.String()
}
