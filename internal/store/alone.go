package store

import (
	"context"
	"fmt"
)

// Alone calls do while no other process of the service calls something under the same
// name: it waits for the others, as long as the context lasts. Its lock belongs to a
// connection, not to a transaction, so do may take any locks and may take long. If that
// connection breaks, another process may begin while do still runs.
func (s *Store) Alone(ctx context.Context, name string, do func(context.Context) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return wrap("waiting for others at "+name, err)
	}
	defer conn.Release()
	const key = `hashtextextended('benchloom ' || $1, 0)`
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(`+key+`)`, name); err != nil {
		return wrap("waiting for others at "+name, err)
	}
	defer func() {
		// A connection that may still hold the lock must not go back to the pool.
		if _, err := conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock(`+key+`)`, name); err != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
	}()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
