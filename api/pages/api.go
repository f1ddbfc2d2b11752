package pages

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// API is the part of the API that pages show; an *apiclient.Client is one. Pages call it
// under no lock, from many goroutines at once; it is never nil. Its errors are
// [*apiclient.Problem], also for what does not exist.
type API interface {
	Info(ctx context.Context) (apiclient.Info, error)
	// Revision changes with what a subject of live updates shows, see
	// [apiclient.Client.Revision].
	Revision(ctx context.Context, subject string) (apiclient.Revision, error)
	overviewAPI
	collectorAPI
	sizeClassAPI
	jobAPI
	profileAPI
	flameAPI
	projectAPI
	compareAPI
	historyAPI
	requestAPI
	graphAPI
	queueAPI
	waitAPI
}
