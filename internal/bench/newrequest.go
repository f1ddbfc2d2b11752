package bench

import (
	"fmt"
	"time"
)

// NewRelease returns a request to measure a published version. The date is that of
// its tag and may be nil.
func NewRelease(project, tag string, date *time.Time, selection Selection, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: Release, Tag: tag, Submission: by,
		Origin: Origin{CommitDate: date}, Scope: Scope{Selection: selection}, Standing: Standing{Status: ArtifactsReady},
	})
}

// NewMasterCommit returns a request to measure a merged commit.
func NewMasterCommit(project, tag string, from Origin, selection Selection, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: Master, Tag: tag, Submission: by,
		Origin: from, Scope: Scope{Selection: selection}, Standing: Standing{Status: ArtifactsReady},
	})
}

// NewTryBuild returns a request to measure proposed changes. It waits for its
// artifacts, and the tag may be empty until then; see [Request.Ready].
func NewTryBuild(project, tag string, from Origin, selection Selection, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: Try, Tag: tag, Submission: by,
		Origin: from, Scope: Scope{Selection: selection}, Standing: Standing{Status: WaitingForArtifacts},
	})
}

// Ready returns the try build with its artifacts ready.
func (r Request) Ready() (Request, error) {
	r.Status = ArtifactsReady
	return newRequest(r)
}

// NewMeasurement returns an ad-hoc request to measure an artifact, alone or in turns
// with another one. The date may be nil.
func NewMeasurement(project, tag string, date *time.Time, scope Scope, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: AdHoc, Tag: tag, Submission: by,
		Origin: Origin{CommitDate: date}, Scope: scope, Standing: Standing{Status: ArtifactsReady},
	})
}

// NewProfileRequest returns an ad-hoc request to run one test case of an artifact under a
// profiler and, with scope.Versus, the same of another artifact.
func NewProfileRequest(project, tag string, scope Scope, by Submission) (Request, error) {
	if scope.Profiler == "" {
		return Request{}, invalid("profiler", "", "name one, such as pprof-cpu or perf")
	}
	return NewMeasurement(project, tag, nil, scope, by)
}

// NewCommandRequest returns a request to run one command.
func NewCommandRequest(project string, c Command, scope Scope, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: AdHoc, Submission: by, Scope: scope,
		Commands: Commands{Command: &c, Deferred: true}, Standing: Standing{Status: InProgress},
	})
}

// NewBatchRequest returns a request to run many commands, each as a separate job. The
// digest is a hash of all of them.
func NewBatchRequest(project string, commands int, digest string, scope Scope, by Submission) (Request, error) {
	r := Request{
		Project: project, Type: AdHoc, Submission: by, Scope: scope,
		Commands: Commands{Batch: commands, Digest: digest, Deferred: true}, Standing: Standing{Status: InProgress},
	}
	if commands < 1 {
		return Request{}, invalid("batch", fmt.Sprint(commands), "a batch holds at least one command")
	}
	return newRequest(r)
}

// NewGraphRequest returns a request to run a graph that a template makes.
func NewGraphRequest(project string, call TemplateCall, by Submission) (Request, error) {
	return newRequest(Request{
		Project: project, Type: AdHoc, Submission: by, Template: &call, Standing: Standing{Status: InProgress},
	})
}

func newRequest(r Request) (Request, error) {
	if err := r.check(); err != nil {
		return Request{}, err
	}
	return r, nil
}

// Validate refuses a request that its kind's constructor would refuse, or that no
// later event can lead to.
func (r Request) Validate() error {
	err := r.check()
	if err != nil && r.ID != "" {
		return fmt.Errorf("request %s: %w", r.ID, err)
	}
	return err
}

func (r Request) check() error {
	if err := CheckName("project", r.Project); err != nil {
		return err
	}
	if r.Submitter == "" {
		return invalid("submitter", "", "name the account that submits the request")
	}
	if _, err := NewStanding(r.Status, r.Outcome, r.CompletedAt); err != nil {
		return err
	}
	for _, tag := range []string{r.Tag, r.Parent, r.Versus} {
		if tag == "" {
			continue
		}
		if err := CheckTag(tag); err != nil {
			return err
		}
	}
	if err := r.checkOrigin(); err != nil {
		return err
	}
	switch {
	case r.Template != nil:
		return r.checkTemplate()
	case r.OfCommands():
		return r.checkCommands()
	}
	return r.checkMeasurement()
}

// checkTemplate refuses fields that a graph's nodes have instead of their request.
func (r Request) checkTemplate() error {
	switch {
	case r.Template.Name == "" || r.Template.Definitions == "" || r.Template.Graph == "":
		return invalid("template", r.Template.Name, "name it, its definitions and the graph that it makes")
	case r.Type != AdHoc:
		return invalid("request type", string(r.Type), "a graph is run by a request of type adhoc")
	case r.Command != nil || r.Batch != 0 || r.Digest != "" || r.Deferred:
		return invalid("template", r.Template.Name, "commands are nodes of the graph")
	case r.Tag != "" || r.Versus != "" || r.Profiler != "" || !r.Selection.IsZero() || r.CommitDate != nil:
		return invalid("template", r.Template.Name, "its nodes say what is measured")
	case r.SizeClass != 0 || r.Constraints != nil:
		return invalid("template", r.Template.Name, "its nodes say where they run")
	case r.Status == WaitingForArtifacts:
		return invalid("request status", string(r.Status), "only a try build waits for artifacts")
	}
	return nil
}

func (r Request) checkOrigin() error {
	switch {
	case r.PR < 0:
		return invalid("pull request", fmt.Sprint(r.PR), "use its number, or leave it out")
	case r.Type.HasParent() && r.Parent != "" && r.Parent == r.Tag:
		return invalid("parent", r.Parent, "an artifact cannot be its own parent; name the commit that it was made from")
	case r.Type.HasParent():
		return nil
	case r.Parent != "":
		return invalid("parent", r.Parent, fmt.Sprintf("a request of type %s has no parent; leave parent out, or use type master or try", r.Type))
	case r.PR != 0:
		return invalid("pull request", fmt.Sprint(r.PR), fmt.Sprintf("a request of type %s belongs to no pull request; leave pr out, or use type master or try", r.Type))
	case r.WaitsFor != "" || r.ParentNote != "":
		return invalid("request type", string(r.Type), "it has no parent to wait for")
	}
	return nil
}

// checkMeasurement refuses fields that the measurement of an artifact cannot have.
func (r Request) checkMeasurement() error {
	if t, err := ParseRequestType(string(r.Type)); err != nil || t != r.Type {
		return invalid("request type", string(r.Type), "use release, master, try or adhoc")
	}
	switch {
	case r.Status == WaitingForArtifacts && r.Type != Try:
		return invalid("request status", string(r.Status), "only a try build waits for artifacts")
	case r.Tag == "" && r.Type != Try:
		return invalid("tag", "", "the request names no artifact; add a tag, such as 1.26.0")
	case r.Tag == "" && r.Status != WaitingForArtifacts && r.Status != Completed:
		return invalid("tag", "", "the artifacts are said to be ready, but not which; add a tag")
	case r.Deferred:
		return invalid("request type", string(r.Type), "only the jobs of commands are planned at submission")
	case r.Digest != "":
		return invalid("digest", r.Digest, "only a batch has one")
	case r.Selection.Iterations < 0:
		return invalid("selection.iterations", fmt.Sprint(r.Selection.Iterations), "use a positive number, or leave it out for the suite's")
	case r.SizeClass < 0:
		return invalid("size class", fmt.Sprint(int(r.SizeClass)), "use a positive number, or leave it out for the project's")
	case r.Profiler != "":
		return r.checkProfiler()
	case r.Type == AdHoc && r.Versus != "" && r.Versus == r.Tag:
		return invalid("versus", r.Versus, "an artifact cannot be measured in turns with itself")
	case r.Type == AdHoc:
		return nil
	case r.Versus != "":
		return invalid("versus", r.Versus, "versus is for ad-hoc measurements of an artifact; use type adhoc with a tag, or leave it out")
	case r.SizeClass != 0:
		return invalid("size class", fmt.Sprint(int(r.SizeClass)), fmt.Sprintf("a %s request is measured on its project's size class; leave size_class out, or use type adhoc", r.Type))
	case r.Constraints != nil:
		return invalid("request type", string(r.Type), fmt.Sprintf("a %s request is measured where its project's constraints say; leave constraints out, or use type adhoc", r.Type))
	}
	return nil
}

// checkProfiler refuses a profiler where there is no single test case to run under it.
func (r Request) checkProfiler() error {
	s := r.Selection
	switch {
	case r.Type != AdHoc:
		return invalid("profiler", r.Profiler, fmt.Sprintf("a %s request measures; use type adhoc to profile", r.Type))
	case r.Versus != "" && r.Versus == r.Tag:
		return invalid("versus", r.Versus, "an artifact cannot be compared with itself")
	case len(s.Benchmarks) != 1 || len(s.Profiles) > 1 || len(s.Scenarios) > 1 || len(s.Backends) > 1 || len(s.Targets) > 1 || s.Set != "":
		return invalid("selection", "", "a profile is of one test case: name its benchmark, and at most one profile, scenario, backend and target")
	case s.Iterations > 1:
		return invalid("selection.iterations", fmt.Sprint(s.Iterations), "one iteration is profiled; leave it out")
	}
	return CheckParameter("profiler", r.Profiler)
}

// checkCommands refuses fields that commands cannot have.
func (r Request) checkCommands() error {
	what := "a command"
	if r.Batch != 0 {
		what = "a batch of commands"
	}
	switch {
	case r.Type != AdHoc:
		return invalid("request type", string(r.Type), fmt.Sprintf("a %s request is measured with its project's suite, not with a command; use type adhoc for a command", r.Type))
	case r.Command != nil && r.Batch != 0:
		return invalid("batch", fmt.Sprint(r.Batch), "the request has both a command and jobs; add the command to the jobs")
	case r.Batch < 0:
		return invalid("batch", fmt.Sprint(r.Batch), "a batch holds at least one command")
	case r.Batch > 0 && r.Digest == "":
		return invalid("digest", "", "a batch has a digest of what it asks for")
	case r.Batch == 0 && r.Digest != "":
		return invalid("digest", r.Digest, "only a batch has one")
	case r.Batch > 0 && !r.Deferred:
		return invalid("batch", fmt.Sprint(r.Batch), "its jobs are planned at submission")
	case r.Tag != "":
		return invalid("tag", r.Tag, what+" measures no artifact; leave tag out")
	case r.Versus != "":
		return invalid("versus", r.Versus, "versus is for ad-hoc measurements of an artifact; use type adhoc with a tag, or leave it out")
	case r.Profiler != "":
		return invalid("profiler", r.Profiler, "only test cases of a suite are profiled; leave profiler out")
	case r.CommitDate != nil:
		return invalid("commit date", r.CommitDate.String(), what+" is made from no commit; leave commit_date out")
	case !r.Selection.ofOneTarget():
		return invalid("request type", string(r.Type), what+" measures nothing of a suite; leave selection out")
	case r.SizeClass < 0:
		return invalid("size class", fmt.Sprint(int(r.SizeClass)), "use a positive number, or leave it out for the project's")
	case r.Status == WaitingForArtifacts:
		return invalid("request status", string(r.Status), "only a try build waits for artifacts")
	}
	return nil
}
