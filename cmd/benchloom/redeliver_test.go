package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/bench"
)

// aside STATEDIR PROJECT TAG begins the runs of a request whose blocks a proxy's answer,
// in an earlier version, has set aside in the spool of the collector's state directory.
// Beside them are a block of a run that nobody knows, a damaged one, and one that waits.
func (s *service) aside(args []string) error {
	plans, err := s.started(args[1], args[2])
	if err != nil {
		return err
	}
	dir := filepath.Join(args[0], spoolDir)
	spool, err := collection.OpenSpool(dir)
	if err != nil {
		return err
	}
	ctx := s.t.Context()
	for _, plan := range plans {
		if err := spool.Put(ctx, plan.Run.ID, 1, collections(plan.Missing, 1, 1)); err != nil {
			return err
		}
	}
	unknown := bench.NewRunID("aaaaaaaaaaaaaaaa", "workflow", "activity", 1)
	if err := spool.Put(ctx, unknown, 1, collections(plans[0].Missing, 1, 1)); err != nil {
		return err
	}
	waiting, err := spool.List()
	if err != nil {
		return err
	}
	for _, b := range waiting {
		if err := spool.SetAside(ctx, b, errors.New("404 Not Found")); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, string(unknown)+".2.json.gz.refused"), []byte("damaged"), 0o600); err != nil {
		return err
	}
	return spool.Put(ctx, unknown, 3, collections(plans[0].Missing, 1, 1))
}
