package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

const gzipType = "application/gzip"

// SuiteRecord stores suites by their content hash.
type SuiteRecord interface {
	PutSuite(ctx context.Context, hash, name string, archive []byte) error
	// SuiteArchive returns store.ErrNotFound for an unknown hash.
	SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error)
}

type suiteHandlers struct {
	*base
	record SuiteRecord
}

func (s *suiteHandlers) register() {
	handle(s.base, operation{id: "put-suite", method: http.MethodPut, path: "/suites/{hash}", need: toWrite, scope: ofNoProject, audit: "suite upload", tag: "suites",
		summary: "Upload a suite", description: "The archive is unpacked and checked. It must have the content hash in the path. A repeated upload changes nothing.",
		maxBody: s.MaxSuite, slots: suiteSlots}, s.putSuite)
	handle(s.base, operation{id: "get-suite", method: http.MethodGet, path: "/suites/{hash}", need: toFetch, tag: "suites", slots: suiteSlots,
		summary: "Download a suite", answers: []documented{{status: http.StatusOK, media: []string{gzipType}}}}, s.getSuite)
}

type suitePath struct {
	Hash string `path:"hash" doc:"Content hash: SHA-256 in hexadecimal."`
}

func checkHash(hash string) error {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
		return invalid("the suite hash %.80q is invalid: use a SHA-256 in 64 hexadecimal digits, as 'benchloom suite check' prints it", hash)
	}
	return nil
}

type putSuite struct {
	Hash    string `path:"hash" doc:"Content hash: SHA-256 in hexadecimal."`
	RawBody []byte `contentType:"application/gzip"`
}

func (s *suiteHandlers) putSuite(ctx context.Context, in *putSuite) (*body[apiclient.SuiteInfo], error) {
	if err := checkHash(in.Hash); err != nil {
		return nil, err
	}
	bundle, err := suite.ReadBundle(bytes.NewReader(in.RawBody), in.Hash)
	if err != nil {
		return nil, err
	}
	loaded, err := bundle.Load()
	if err != nil {
		return nil, err
	}
	if err := s.record.PutSuite(ctx, in.Hash, loaded.Name(), in.RawBody); err != nil {
		return nil, err
	}
	return answer(apiclient.SuiteInfo{
		Hash: in.Hash, Name: loaded.Name(), Description: loaded.Description(),
		Benchmarks: notNil(loaded.Benchmarks()), Sets: notNil(loaded.Sets()),
	}, nil)
}

type suiteArchive struct {
	ContentType  string `header:"Content-Type"`
	CacheControl string `header:"Cache-Control"`
	Body         []byte
}

func (s *suiteHandlers) getSuite(ctx context.Context, in *suitePath) (*suiteArchive, error) {
	if err := checkHash(in.Hash); err != nil {
		return nil, err
	}
	_, archive, err := s.record.SuiteArchive(ctx, in.Hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusNotFound, "unknown-suite", "the suite %.12s is not stored; upload it with PUT /api/v1/suites/%s", in.Hash, in.Hash)
	}
	if err != nil {
		return nil, err
	}
	return &suiteArchive{ContentType: gzipType, CacheControl: "private, max-age=31536000, immutable", Body: archive}, nil
}

// notNil returns an empty list for nil, so that JSON has a list.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
