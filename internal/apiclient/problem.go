package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Errors for callers to distinguish. Errors of a [Client] match them with errors.Is.
var (
	// ErrJobClosed: the job has ended; no run of it may start.
	ErrJobClosed = errors.New("the job has ended")
	// ErrNobodyWaits: no open request waits for the job.
	ErrNobodyWaits = errors.New("no open request waits for the job")
	// ErrFenced: a newer registration of the collector exists, or it is unknown.
	ErrFenced = errors.New("the collector was registered again since")
	// ErrNameTaken: another live machine has registered the collector's name.
	ErrNameTaken = errors.New("another live machine has this collector name")
	// ErrDraining: the collector must take no further job.
	ErrDraining = errors.New("the collector is draining")
	// ErrOutdated: another version of the collector is wanted.
	ErrOutdated = errors.New("the collector is out of date")
	// ErrUnfit: the collector does not meet the job's constraints.
	ErrUnfit = errors.New("the collector does not meet the job's constraints")
	// ErrElsewhere: the job's task is not for this collector.
	ErrElsewhere = errors.New("the job waits elsewhere")
	// ErrUnderWay: a run of the task's dispatch goes on.
	ErrUnderWay = errors.New("a run of the job is under way")
	// ErrStaleDispatch: the task was replaced by a later dispatch of its job.
	ErrStaleDispatch = errors.New("the job was dispatched again")
	// ErrNewMachine: the machine's hardware is not the collector's.
	ErrNewMachine = errors.New("another machine has this collector name")
	// ErrUnauthorized: the token is missing or unknown.
	ErrUnauthorized = errors.New("not authorized")
	// ErrForbidden: the token does not permit this.
	ErrForbidden = errors.New("not permitted")
	// ErrNotFound: the named thing does not exist.
	ErrNotFound = errors.New("not found")
)

// Problem is an error answered by the API, as in RFC 9457.
type Problem struct {
	// Type is a URN for programs.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail names the thing, the reason and what to do.
	Detail string          `json:"detail"`
	Errors []ProblemDetail `json:"errors,omitempty"`
	// RequestID names the call in the API's log.
	RequestID string `json:"-"`
	// RetryAfter is the wait requested by the API; 0: none.
	RetryAfter time.Duration `json:"-"`
}

// ProblemDetail is one of several errors.
type ProblemDetail struct {
	Message string `json:"message"`
	// Location is the error's position, such as body.tag, query.limit or
	// suite.yaml:3:5.
	Location string `json:"location,omitempty"`
}

// LocationNearest marks an error that offers a known name, project:tag, instead of an unknown
// one.
const LocationNearest = "nearest"

// Error returns the detail, then one line for each of the errors.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Detail)
	if p.Detail == "" {
		fmt.Fprintf(&b, "the API answered %d %s", p.Status, p.Title)
	}
	for _, e := range p.Errors {
		b.WriteString("\n  ")
		if e.Location != "" {
			b.WriteString(e.Location + ": ")
		}
		b.WriteString(e.Message)
	}
	if p.Status >= http.StatusInternalServerError && p.RequestID != "" && !strings.Contains(p.Detail, p.RequestID) {
		fmt.Fprintf(&b, " (request ID %s)", p.RequestID)
	}
	return b.String()
}

// Is reports whether target is the sentinel for the problem's type or status. An answer
// of anything but the API matches none.
func (p *Problem) Is(target error) bool {
	if !p.FromAPI() {
		return false
	}
	switch target {
	case ErrJobClosed:
		return p.Type == ProblemJobClosed
	case ErrNobodyWaits:
		return p.Type == ProblemNobodyWaits
	case ErrFenced:
		return p.Type == ProblemFenced
	case ErrNameTaken:
		return p.Type == ProblemNameTaken
	case ErrDraining:
		return p.Type == ProblemDraining
	case ErrOutdated:
		return p.Type == ProblemOutdated
	case ErrUnfit:
		return p.Type == ProblemUnfit
	case ErrElsewhere:
		return p.Type == ProblemElsewhere
	case ErrUnderWay:
		return p.Type == ProblemUnderWay
	case ErrStaleDispatch:
		return p.Type == ProblemStale
	case ErrNewMachine:
		return p.Type == ProblemNewMachine
	case ErrUnauthorized:
		return p.Status == http.StatusUnauthorized
	case ErrForbidden:
		return p.Status == http.StatusForbidden
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	}
	return false
}

// FromAPI reports whether the API itself has answered, and not a proxy, a gateway or
// another server on the way to it.
func (p *Problem) FromAPI() bool { return strings.HasPrefix(p.Type, ProblemPrefix) }

// passing reports whether the API has only answered that it is not available.
func (p *Problem) passing() bool {
	return p.Status == http.StatusTooManyRequests || p.Status == http.StatusRequestTimeout ||
		p.Status >= http.StatusInternalServerError && p.Status != http.StatusNotImplemented
}

// unreachable is the error of a call without an answer.
type unreachable struct {
	base string
	err  error
}

func (e *unreachable) Error() string {
	text := "cannot reach the Benchloom API at " + e.base + ": "
	var timeout interface{ Timeout() bool }
	var inURL *url.Error
	switch {
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return text + "connection refused; is it running? start it with 'benchloom up'"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &timeout) && timeout.Timeout():
		return text + "no answer in time"
	case errors.As(e.err, &inURL):
		return text + inURL.Err.Error()
	}
	return text + e.err.Error()
}

func (e *unreachable) Unwrap() error { return e.err }

// transportError returns the error of a call without an answer. If the caller's
// context has ended, that is the reason.
func transportError(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("calling the Benchloom API: %w", context.Cause(ctx))
	}
	return &unreachable{base: base, err: err}
}

// IsTransient reports whether the same call may succeed later: the API was not
// reached, did not answer in time, answered that it is unavailable, or something else
// has answered in its place, such as a proxy.
func IsTransient(err error) bool {
	var gone *unreachable
	if errors.As(err, &gone) {
		return true
	}
	var p *Problem
	return errors.As(err, &p) && (!p.FromAPI() || p.passing())
}

// IsRefusal reports whether the API itself has refused for good what was sent. An
// answer about the caller is no refusal: one about its token ([ErrUnauthorized],
// [ErrForbidden] unless the thing is another collector's), its registration
// ([ErrFenced]) or the address that it has used.
func IsRefusal(err error) bool {
	var p *Problem
	if !errors.As(err, &p) || !p.FromAPI() || p.passing() || p.Type == ProblemFenced || p.Type == ProblemForeignHost {
		return false
	}
	return p.Status != http.StatusUnauthorized && (p.Status != http.StatusForbidden || p.Type == ProblemNotYours)
}
