package pages

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// jobAPI backs the pages of jobs and runs, and retries jobs.
type jobAPI interface {
	Job(ctx context.Context, key bench.JobKey) (apiclient.JobDetail, error)
	ExplainJob(ctx context.Context, key bench.JobKey) (diagnose.JobExplanation, error)
	Run(ctx context.Context, id bench.RunID) (apiclient.RunDetail, error)
	RunLog(ctx context.Context, run bench.RunID, q apiclient.LogQuery) (apiclient.LogPiece, error)
	RunResults(ctx context.Context, id bench.RunID, after string) (apiclient.RunResultList, error)
	RunFiles(ctx context.Context, id bench.RunID) ([]apiclient.RunFile, error)
	RetryJob(ctx context.Context, key bench.JobKey, act apiclient.Act) (apiclient.RequestOperation, error)
}

func (p *Pages) jobPages() []page {
	return []page{
		{pattern: "/jobs/{job}", parameters: []string{openParameter}, show: p.job},
		{
			pattern:    "/runs/{run}",
			parameters: []string{lineParameter, pageParameter, fromParameter, toParameter, scopeParameter, metricParameter, attemptParameter, openParameter}, show: p.run,
		},
	}
}

type jobView struct {
	apiclient.JobDetail
	Why diagnose.JobExplanation
	// Attempts are its runs with their costs, the newest first.
	Attempts []attempt
	// Shown are the shown test cases; all of them on request.
	Shown []bench.TestCase
	Whole bool
	// Made lists the profile made by the job; nil: it measures.
	Made *madeProfiles
	// Workflow is its address in the Temporal Web UI; empty: not known.
	Workflow string
	// Action is nil unless something can be done about it.
	Action *act
}

// attempt is a run with its cost.
type attempt struct {
	apiclient.Run
	Cost diagnose.RunCost
}

// shownCases bounds the test cases of a job unless all are asked for.
const shownCases = 20

// job explains a job and shows its attempts.
func (p *Pages) job(v *visit) (*view, error) {
	key := bench.JobKey(v.PathValue("job"))
	out := &view{template: "job", APIPath: "/api/v1/jobs/" + segments(key) + "/explain", Command: "benchloom explain " + string(key)}
	if err := v.live(out, "job:"+string(key)); err != nil {
		return nil, err
	}
	if open := v.get(openParameter); open != "" && open != "testcases" {
		return nil, badParameter(openParameter, open, "it is testcases, or left out")
	}
	j, err := v.api.Job(v.Context(), key)
	if err != nil {
		return nil, err
	}
	shown := jobView{JobDetail: j, Shown: j.TestCases, Whole: v.get(openParameter) != "", Workflow: workflowAddress(v.who, j.WorkflowID)}
	if shown.Why, err = v.api.ExplainJob(v.Context(), key); err != nil {
		return nil, err
	}
	if !shown.Whole {
		shown.Shown = shown.Shown[:min(len(shown.Shown), shownCases)]
	}
	if j.Kind == bench.KindProfile {
		made, err := v.madeBy(j.Project, "", apiclient.CodeProfileQuery{Job: key})
		if err != nil {
			return nil, err
		}
		shown.Made = &made
	}
	costs := make(map[bench.RunID]diagnose.RunCost)
	for _, c := range shown.Why.Runs {
		costs[c.ID] = c
	}
	for i := range j.Runs {
		r := j.Runs[len(j.Runs)-1-i]
		shown.Attempts = append(shown.Attempts, attempt{r, costs[r.ID]})
	}
	out.Title, out.Crumbs = "Job "+jobWords(j.Job), []link{projectLink(j.Project)}
	if len(shown.Why.Requests) > 0 {
		request := string(shown.Why.Requests[0])
		out.Crumbs = append(out.Crumbs, link{"/requests/" + segments(request), "Request " + request})
	}
	if j.Status == bench.JobFailure || j.Status == bench.JobCancelled {
		retrying := ""
		if len(shown.Why.Requests) > 0 {
			retrying = quoted("benchloom", "retrigger", string(shown.Why.Requests[0]), string(key), "--lacking", "--reason", "WHY")
		}
		retry, err := p.offer(v, rightToWrite, j.Project, act{
			Name: "retry", Title: "Retry", About: "A new job measures what lacks a result. What has one stays as it is.",
			Address: "/jobs/" + segments(key) + "/retry", Command: retrying,
		})
		if err != nil {
			return nil, err
		}
		shown.Action = &retry
	}
	out.Content = shown
	return out, nil
}

// jobActions retry jobs. The page of the request shows the effect.
func (p *Pages) jobActions() []action {
	return []action{{"/jobs/{job}/retry", func(v *visit) (string, error) {
		done, err := v.api.RetryJob(v.Context(), bench.JobKey(v.PathValue("job")), v.sent())
		return "/requests/" + segments(done.ID) + "#audit", err
	}}}
}

// jobWords names a job by what it does.
func jobWords(j apiclient.Job) string {
	switch {
	case j.Name != "":
		return j.Name
	case len(j.Command) > 0:
		return clip(join(j.Command))
	case j.Versus != "":
		return j.Tag + " in turns with " + j.Versus
	case j.Tag != "":
		return j.Tag
	}
	return string(j.Key)
}

// doing describes the present step of a run, such as "measuring gin build full, 3/5".
func doing(p apiclient.RunProgress) string {
	text := p.Phase
	if p.TestCase != "" {
		text += " " + p.TestCase
	}
	if p.Iteration > 0 {
		text += fmt.Sprintf(", %d/%d", p.Iteration, p.Iterations)
	}
	return text
}

// workflowAddress returns the page of a workflow in the Temporal Web UI; empty if that is
// not known.
func workflowAddress(service apiclient.Info, workflow string) string {
	if service.TemporalUI == "" || workflow == "" {
		return ""
	}
	return strings.TrimSuffix(service.TemporalUI, "/") + "/namespaces/" + url.PathEscape(service.Namespace) + "/workflows/" + url.PathEscape(workflow)
}
