package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/workers"
)

// uninvitedTokenFile returns the file of the own token of a collector without an invitation: a
// state directory may be used under several names, one after the other.
func uninvitedTokenFile(name string) string { return ownTokenFile + "-" + name }

// connect returns a client with the collector's own token: that of its enrolment, or of its
// state directory. Given the token that collectors share, it first makes the own token known
// to the API under the collector's name, again at each start: the API may have forgotten it.
// It waits for the API as long as it takes.
func (f *collectorFlags) connect(ctx context.Context, slots []*collectorFlags) (*apiclient.Client, error) {
	given, err := secret(f.tokenFile, "BENCHLOOM_TOKEN")
	if err != nil {
		return nil, err
	}
	own := ""
	if text, err := secret(filepath.Join(f.stateDir, uninvitedTokenFile(f.name)), ""); err == nil { // what needs it reports that it cannot be read
		own = text
	}
	if given == "" {
		given = own
	}
	client, err := f.transport.client(f.api, given)
	if err != nil {
		return nil, err
	}
	if f.enrolled != nil || given == own {
		return client, nil
	}
	var info apiclient.Info
	err = apiclient.Retry(ctx, apiclient.RetryPolicy{}, func(ctx context.Context) (err error) {
		info, err = client.Info(ctx)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, apiclient.ErrUnauthorized) && own != "":
		return f.transport.client(f.api, own) // the shared token was replaced or withdrawn
	case err != nil, info.Role != api.RoleCollector, info.Collector != "":
		return client, nil //nolint:nilerr // the registration says what is wrong with the token, if anything
	}
	return f.enrolShared(ctx, client, slots)
}

// enrolShared exchanges the token that collectors share for the collector's own.
func (f *collectorFlags) enrolShared(ctx context.Context, shared *apiclient.Client, slots []*collectorFlags) (*apiclient.Client, error) {
	hash, err := ownSecret(f.stateDir, uninvitedTokenFile(f.name))
	if err != nil {
		return nil, err
	}
	ask := apiclient.OwnToken{Name: f.name, SecretHash: hash}
	for _, slot := range slots {
		if err := os.MkdirAll(slot.stateDir, 0o755); err != nil {
			return nil, fmt.Errorf("state directory %s of collector %s cannot be used: %w; make it writable for this user, or name another with --state-dir", slot.stateDir, slot.name, err)
		}
		id, err := workers.MachineID(slot.stateDir)
		if err != nil {
			return nil, err
		}
		ask.Machines = append(ask.Machines, id)
	}
	err = apiclient.Retry(ctx, apiclient.RetryPolicy{}, func(ctx context.Context) error { return shared.PutOwnToken(ctx, ask) })
	if err != nil {
		err = fmt.Errorf("getting the own token of collector %s: %w", f.name, err)
		if p, ok := errors.AsType[*apiclient.Problem](err); ok && strings.HasPrefix(p.Type, "urn:benchloom:") {
			return nil, &workers.RefusedError{Err: err}
		}
		return nil, err
	}
	own, err := secret(filepath.Join(f.stateDir, uninvitedTokenFile(f.name)), "")
	if err != nil {
		return nil, err
	}
	return f.transport.client(f.api, own)
}
