package pages

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// API is the part of the API that pages show; an *apiclient.Client is one. Its errors are
// [*apiclient.Problem].
type API interface {
	Info(ctx context.Context) (apiclient.Info, error)
	// Revision changes with what a subject of live updates shows, see
	// [apiclient.Client.Revision].
	Revision(ctx context.Context, subject string) (apiclient.Revision, error)
	overviewAPI
	collectorAPI
	sizeClassAPI
	jobAPI
	projectAPI
	compareAPI
	historyAPI
	requestAPI
	queueAPI
}
