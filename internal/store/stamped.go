package store

import (
	"context"

	"github.com/jellydator/ttlcache/v3"
)

// stamped keeps values read from the record, each with a stamp of what it was read from: a
// value is used while its stamp is that of the record. The values unused for longest are
// dropped.
type stamped[K comparable, V any] struct {
	kept *ttlcache.Cache[K, stampedValue[V]]
}

type stampedValue[V any] struct {
	stamp string
	// seen identifies the state of the record before the stamp was read; see [Store.seen].
	seen  string
	value V
}

func newStamped[K comparable, V any](capacity uint64) stamped[K, V] {
	return stamped[K, V]{ttlcache.New(ttlcache.WithCapacity[K, stampedValue[V]](capacity))}
}

// get returns the value of a key, as kept or as it is read now. The stamp is read first: a
// value that is newer than its stamp is read again, and one that is older is never kept.
// While nothing at all has been written since, the stamp is not read either.
func (s stamped[K, V]) get(key K, seen, stamp func() (string, error), read func() (V, error)) (value V, err error) {
	now := stampedValue[V]{}
	if now.seen, err = seen(); err != nil {
		return value, err
	}
	item := s.kept.Get(key)
	if item != nil && item.Value().seen == now.seen {
		return item.Value().value, nil
	}
	if now.stamp, err = stamp(); err != nil {
		return value, err
	}
	if item != nil && item.Value().stamp == now.stamp {
		now.value = item.Value().value
	} else if now.value, err = read(); err != nil {
		return value, err
	}
	s.kept.Set(key, now, ttlcache.NoTTL)
	return now.value, nil
}

// seen identifies all that a statement sees which begins now: each transaction that has
// written since changes it, for ever. A stamp of thousands of rows takes a millisecond or two,
// this a hundredth.
func (s *Store) seen(ctx context.Context) (string, error) {
	return value[string](ctx, s.reports, `select concat_ws(' ', pg_postmaster_start_time(), pg_current_snapshot())`)
}
