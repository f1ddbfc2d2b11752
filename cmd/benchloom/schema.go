package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/benchloom/benchloom/internal/store"
)

// guardSchema ends the context once a newer program has migrated the database to a schema
// that does not suit this one. When the caller has ended, it passes its error through
// guarded, which then names the reason.
func guardSchema(ctx context.Context, records *store.Store, log *slog.Logger) (_ context.Context, guarded func(error) error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		err := records.WatchSchema(ctx, log)
		stop()
		ended <- err
	}()
	return ctx, func(err error) error {
		stop()
		if refused := <-ended; refused != nil {
			if errors.Is(err, context.Canceled) {
				return refused // it is the reason
			}
			return errors.Join(refused, err)
		}
		return err
	}
}
