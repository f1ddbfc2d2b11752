package apiclient

import (
	"context"
	"net/http"
	"net/url"
)

// PackedCheck tells how the packed results of some artifacts differ from the rows that they
// are derived from.
type PackedCheck struct {
	Artifacts   int      `json:"artifacts" doc:"Artifacts that were looked at."`
	Stale       int      `json:"stale" doc:"Of them those whose results have changed since they were packed: they are read from their rows."`
	Sheets      int      `json:"sheets" doc:"Sheets that agree."`
	Points      int      `json:"points" doc:"Points of histories that agree."`
	Differences []string `json:"differences" doc:"What does not, in words; at most 1,000 on a page."`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// CheckResults compares all packed results of a project with their rows, page by page.
func (c *Client) CheckResults(ctx context.Context, project string) (PackedCheck, error) {
	sum := PackedCheck{Differences: []string{}}
	for cursor := ""; ; {
		query := url.Values{}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		page, err := get[PackedCheck](ctx, c, v1("projects", project, "results", "check"), query)
		if err != nil {
			return sum, err
		}
		sum.Artifacts, sum.Stale, sum.Sheets, sum.Points = sum.Artifacts+page.Artifacts, sum.Stale+page.Stale, sum.Sheets+page.Sheets, sum.Points+page.Points
		sum.Differences = append(sum.Differences, page.Differences...)
		if cursor = page.Next; cursor == "" {
			return sum, nil
		}
	}
}

// RebuildResults has all results of a project packed anew. The packed results of a large
// project, gigabytes, are removed in one transaction.
func (c *Client) RebuildResults(ctx context.Context, project string, act Act) (done Operation, err error) {
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("projects", project, "results", "rebuild"), in: act, out: &done, timeout: transferTimeout,
	})
	return done, err
}
