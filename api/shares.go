package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/lately"
	"github.com/benchloom/benchloom/internal/store"
)

// shareWindow is the time before now in which runs count for shares received.
const shareWindow = time.Hour

// ShareRecord reads the shares due and received.
type ShareRecord interface {
	// Shares counts the runs that began within window before now. It sorts by name.
	Shares(ctx context.Context, by store.ShareBy, window time.Duration) ([]store.Share, error)
}

// manyJobs is the number of jobs from which an answer about them is kept for some seconds.
const manyJobs = 1000

type shareHandlers struct {
	*base
	// shares keeps the shares of many jobs: they cover an hour, and may be some seconds old.
	shares *lately.Cache[store.ShareBy, []store.Share]
}

func newShareHandlers(s *base, record ShareRecord) *shareHandlers {
	read := func(ctx context.Context, by store.ShareBy) ([]store.Share, error) {
		return record.Shares(ctx, by, shareWindow)
	}
	much := func(shares []store.Share) bool {
		jobs := 0
		for _, one := range shares {
			jobs += one.Queued + one.HandedOut + one.Running + one.Started
		}
		return jobs >= manyJobs
	}
	return &shareHandlers{base: s, shares: keep(s, read, much)}
}

func (s *shareHandlers) register() {
	handle(s.base, operation{id: "get-shares", method: http.MethodGet, path: "/shares", need: toRead, tag: "queues",
		summary:     "Shares due, shares received and waits by queue, user, host or pool",
		description: "Shares received and waits cover the runs that began within the last hour."}, s.getShares)
}

type getShares struct {
	By   string `query:"by" enum:"queue,user,host,pool" default:"queue" doc:"Grouping of the shares."`
	Name string `query:"name" doc:"Only those of this queue, user, host or pool."`
}

func (s *shareHandlers) getShares(ctx context.Context, in *getShares) (*body[apiclient.Shares], error) {
	shares, err := s.shares.Get(ctx, store.ShareBy(in.By))
	if err != nil {
		return nil, err
	}
	out := apiclient.Shares{By: in.By, WindowSeconds: shareWindow.Seconds(), Shares: []apiclient.Share{}}
	for _, one := range shares {
		if in.Name == "" || one.Name == in.Name {
			out.Shares = append(out.Shares, shareOf(one))
		}
	}
	if in.Name != "" && len(out.Shares) == 0 {
		return nil, problemf(http.StatusNotFound, "unknown-share", "nothing is known of %s %q: it has no open job, and none of its began within an hour; %s",
			in.By, in.Name, knownShares(in.By, shares))
	}
	return answer(out, nil)
}

// shownShares bounds the number of names in an error.
const shownShares = 10

func knownShares(by string, shares []store.Share) string {
	if len(shares) == 0 {
		return "nor has any other " + by
	}
	var names []string
	for _, one := range shares {
		if one.Name != "" && len(names) < shownShares {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	more := ""
	if len(shares) > shownShares {
		more = " and others"
	}
	return "known are " + strings.Join(names, ", ") + more
}

func shareOf(s store.Share) apiclient.Share {
	return apiclient.Share{
		Name: s.Name, Class: s.Class, Weight: s.Weight, Level: s.Level, Share: s.Entitled, Started: s.Started, Received: s.Received,
		Queued: s.Queued, HandedOut: s.HandedOut, Running: s.Running, WaitMedian: s.WaitMedian, Wait90: s.Wait90, WaitMax: s.WaitMax,
		OldestSince: s.OldestSince,
	}
}
