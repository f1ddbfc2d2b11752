package apiclient

import (
	"context"
	"net/url"
)

// Revision tells whether what was read of a subject is still current.
type Revision struct {
	Subject  string `json:"subject"`
	Revision string `json:"revision" doc:"Changes with what the subject shows; two revisions have no order."`
	// FreshSeconds is more than 0 and at most 1.
	FreshSeconds float64 `json:"fresh_seconds" doc:"For so long the same is answered to all, without another look at the subject." example:"0.8"`
}

// SubjectService is the subject of what concerns no single request or job: the state of
// requests, of collectors, and of what runs.
const SubjectService = "service"

// Revision returns the revision of a subject: "service", "request:" with a request's ID, or
// "job:" with a job's key. It is at most a second old.
func (c *Client) Revision(ctx context.Context, subject string) (Revision, error) {
	return get[Revision](ctx, c, v1("revision"), url.Values{"subject": {subject}})
}
