package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// AuditRecord records what was done.
type AuditRecord interface {
	// Enter adds an entry about something that was done.
	Enter(ctx context.Context, what store.Operation) error
}

// auditBound bounds the writing of an entry, even if the client has gone.
const auditBound = 5 * time.Second

// enter records an operation that has succeeded. If that fails, so does the operation: every
// answer of success is in the audit, and repeating the operation is harmless.
func (s *base) enter(ctx context.Context, action string, in, out any) error {
	what, changed := entryOf(in, out)
	if !changed {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), auditBound)
	defer stop()
	what.Action, what.Result.Changed = action, true
	what.Who = cmp.Or(caller(ctx).Owner, what.Who)
	return s.audit.Enter(ctx, what)
}

// entryOf describes what an operation has done by its input and answer; changed is false
// when it has done nothing. Secrets and values of configurations, which may hold some, are
// left out.
func entryOf(in, out any) (what store.Operation, changed bool) {
	switch in := in.(type) {
	case *createRequest:
		what, changed = requestEntered(out.(*createdRequest))
		what.Reason = in.Body.Reason
		return what, changed
	case *runGraph:
		what, changed = graphEntered(out.(*startedGraph))
		what.Reason = in.Body.Reason
		return what, changed
	case *cloneGraph:
		what, changed = graphEntered(out.(*startedGraph))
		what.Reason = in.Body.Reason
		return what, changed
	case *artifactsReady:
		done := out.(*body[apiclient.Notified]).Body
		what = store.Operation{Project: done.Request.Project, Subject: string(done.Request.ID)}
		what.Result.Message = "its artifact is " + in.Body.Tag
		return what, !done.Duplicate && !done.Late
	case *unstickRequest:
		return repairsEntered(out.(*body[apiclient.Unstuck]).Body)
	case *runRetention:
		return store.Operation{Subject: "retention"}, true
	case *projectPath:
		return store.Operation{Project: in.Project, Subject: in.Project}, true
	case *applyProject:
		return projectEntered(out.(*body[apiclient.Applied]).Body)
	case *putSuite:
		done := out.(*body[apiclient.SuiteInfo]).Body
		what = store.Operation{Subject: in.Hash}
		what.Result.Message = fmt.Sprintf("suite %s, %s", done.Name, count(len(done.Benchmarks), "benchmark"))
	case *inviteCollector:
		i := in.Body
		what = store.Operation{Subject: i.Name}
		what.Result.Message = fmt.Sprintf("for pool %s, size class %d, target %s", i.Pool, i.SizeClass, i.Target)
		if i.Replace {
			what.Result.Message += ", in place of the enrolled machine"
		}
	case *enrollCollector:
		name := out.(*body[apiclient.Enrolled]).Body.Invitation.Name
		what = store.Operation{Who: name, Subject: name}
		what.Result.Message = "the collector has a token of its own"
	case *actOnCollector:
		what = store.Operation{Subject: in.Collector}
		if in.Body != nil {
			what.Reason = in.Body.Reason
		}
	case *removeCollector:
		what = store.Operation{Subject: in.Collector}
		if in.Force {
			what.Result.Message = "also if it was live"
		}
	case *wantVersion:
		what = store.Operation{Subject: cmp.Or(in.Body.Pool, "all pools")}
		what.Result.Message = "wanted is " + cmp.Or(in.Body.Version, "any version")
	default:
		panic(fmt.Sprintf("api: the audit does not know %T", in)) // a test calls each operation
	}
	return what, true
}

func requestEntered(done *createdRequest) (store.Operation, bool) {
	r := done.Body
	what := store.Operation{Project: r.Project, Subject: string(r.ID)}
	what.Result.Message = string(r.Type)
	if r.Tag != "" {
		what.Result.Message += " " + r.Tag
	}
	what.Result.Requests = []bench.RequestID{r.ID}
	return what, done.Status == http.StatusCreated
}

func graphEntered(done *startedGraph) (store.Operation, bool) {
	r := done.Body.Request
	if r == nil {
		return store.Operation{}, false
	}
	what := store.Operation{Project: r.Project, Subject: string(r.ID)}
	what.Result.Message = fmt.Sprintf("template %s, %s", r.Template.Name, count(done.Body.Nodes, "node"))
	if n := len(r.Template.Customised); n > 0 {
		what.Result.Message += fmt.Sprintf(", customised: %s", strings.Join(r.Template.Customised, "; "))
	}
	what.Result.Requests = []bench.RequestID{r.ID}
	return what, done.Status == http.StatusCreated
}

func repairsEntered(done apiclient.Unstuck) (store.Operation, bool) {
	what := store.Operation{Project: done.Request.Project, Subject: string(done.Request.ID)}
	var repairs []string
	for _, f := range done.Findings {
		if f.Repaired {
			repairs = append(repairs, f.Repair+" "+f.Subject)
		}
	}
	what.Result.Message = strings.Join(repairs, ", ")
	return what, len(repairs) > 0
}

// projectEntered names the settings that have changed, without their values.
func projectEntered(done apiclient.Applied) (store.Operation, bool) {
	what := store.Operation{Project: done.Project.Name, Subject: done.Project.Name}
	var names []string
	for _, c := range done.Changes {
		name, _, _ := strings.Cut(c, " ")
		switch {
		case strings.HasPrefix(c, "the project is new"):
			name = "the project is new"
		case strings.HasPrefix(c, "the suite changes"):
			name = c
		case name == "the":
			continue
		}
		names = append(names, name)
	}
	what.Result.Message = strings.Replace(strings.Join(names, ", "), "the project is new, ", "the project is new: ", 1)
	return what, done.Changed && !done.DryRun
}
