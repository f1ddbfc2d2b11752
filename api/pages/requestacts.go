package pages

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// requestActs lists what can be done about a request now.
func (p *Pages) requestActs(v *visit, d apiclient.RequestDetail) ([]act, error) {
	id := string(d.ID)
	base := "/requests/" + id + "/"
	var all []act
	if d.Status == bench.Completed {
		all = []act{
			{Name: "retry", Title: "Retry", About: "Opens it again for what lacks a result. What has one stays as it is.", Address: base + "retry", Command: "benchloom retrigger " + id + " --lacking --reason WHY"},
		}
	} else {
		all = []act{
			{Name: "unstick", Title: "Repair", About: "Looks for what is stuck in Temporal and in the record, and makes the repairs that are safe.", Address: base + "unstick", Command: "benchloom request unstick " + id},
			{Name: "cancel", Title: "Cancel", About: "Ends it. Jobs for which nothing else waits are stopped; what was measured stays.", Grave: true, Address: base + "cancel", Command: "benchloom request cancel " + id + " --reason WHY"},
		}
		if d.Status != bench.InProgress {
			all = append(all, act{Name: "expire", Title: "Expire", About: "Ends it because it has waited too long.", Grave: true, Address: base + "expire", Command: "benchloom request expire " + id + " --reason WHY"})
		}
	}
	for i := range all {
		var err error
		if all[i], err = p.offer(v, rightToWrite, d.Project, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p *Pages) requestActions() []action {
	on := func(name string, do func(v *visit, ref string) (apiclient.RequestOperation, error)) action {
		return action{"/requests/{request}/" + name, func(v *visit) (string, error) {
			done, err := do(v, v.PathValue("request"))
			return "/requests/" + string(done.ID) + "#audit", err
		}}
	}
	return []action{
		on("cancel", func(v *visit, ref string) (apiclient.RequestOperation, error) {
			return v.api.CancelRequest(v.Context(), ref, v.sent())
		}),
		on("expire", func(v *visit, ref string) (apiclient.RequestOperation, error) {
			return v.api.ExpireRequest(v.Context(), ref, apiclient.Expiry{Act: v.sent()})
		}),
		on("retry", func(v *visit, ref string) (apiclient.RequestOperation, error) {
			return v.api.RetryRequest(v.Context(), ref, v.sent())
		}),
		on("again", func(v *visit, ref string) (apiclient.RequestOperation, error) {
			return v.api.RemeasureRequest(v.Context(), ref, apiclient.Remeasurement{Act: v.sent(), Benchmarks: v.PostForm["benchmark"]})
		}),
		{"/requests/{request}/unstick", func(v *visit) (string, error) {
			done, err := v.api.UnstickRequest(v.Context(), v.PathValue("request"), apiclient.Unstick{})
			return "/requests/" + string(done.Request.ID) + "#audit", err
		}},
	}
}

// againView is the content of the page that previews measuring a request again.
type againView struct {
	apiclient.Request
	// Preview is nil when nothing can be measured again; Why says why.
	Preview *apiclient.Preview
	Message string
	Why     string
	// TestCases and Jobs count all that would be measured.
	Jobs, TestCases int
	Benchmarks      []string
	Act             act
}

// again previews what measuring a request again would do and cost.
func (p *Pages) again(v *visit) (*view, error) {
	ref := v.PathValue("request")
	detail, err := v.api.Request(v.Context(), ref)
	if err != nil {
		return nil, err
	}
	id := string(detail.ID)
	benchmarks := v.URL.Query()["benchmark"]
	selector := []string{"stage=own"}
	var fields []field
	for _, b := range benchmarks {
		selector = append(selector, "benchmark="+b)
		fields = append(fields, field{"benchmark", b})
	}
	command := []string{"benchloom", "retrigger", id, "--select", strings.Join(selector, ","), "--downstream", "none"}
	out := againView{Request: detail.Request, Benchmarks: benchmarks}
	if out.Act, err = p.offer(v, rightToWrite, detail.Project, act{
		Name: "again", Title: "Measure again", About: "The new results count from then on; the former ones stay in the record.",
		Address: "/requests/" + id + "/again", Fields: fields, Command: quoted(append(command, "--reason", "WHY")...),
	}); err != nil {
		return nil, err
	}
	if out.Act.Allowed { // the preview needs the same right
		would, err := v.api.PreviewRemeasurement(v.Context(), id, apiclient.Remeasurement{Benchmarks: benchmarks})
		problem := problemIf(err, http.StatusConflict, http.StatusUnprocessableEntity)
		switch {
		case problem != nil:
			out.Why, out.Act.Allowed, out.Act.WhyNot = problem.Detail, false, "There is nothing to do."
		case err != nil:
			return nil, err
		default:
			out.Preview, out.Message, out.Jobs, out.TestCases = would.Operation.Preview, would.Operation.Message, would.Operation.Jobs, would.Operation.TestCases
		}
	}
	return &view{
		template: "again", Title: fmt.Sprintf("Measure %s again", subjectOf(detail.Request)),
		Crumbs:  []link{projectLink(detail.Project), {"/requests/" + id, subjectOf(detail.Request)}},
		APIPath: "", Command: quoted(append(command, "--preview")...), Content: out,
	}, nil
}
