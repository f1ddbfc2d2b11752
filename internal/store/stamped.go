package store

import "github.com/jellydator/ttlcache/v3"

// stamped keeps values read from the record, each with a stamp of what it was read from: a
// value is used while its stamp is that of the record. The values unused for longest are
// dropped.
type stamped[K comparable, V any] struct {
	kept *ttlcache.Cache[K, stampedValue[V]]
}

type stampedValue[V any] struct {
	stamp string
	value V
}

func newStamped[K comparable, V any](capacity uint64) stamped[K, V] {
	return stamped[K, V]{ttlcache.New(ttlcache.WithCapacity[K, stampedValue[V]](capacity))}
}

// get returns the value of a key, as kept or as it is read now. The stamp is read first: a
// value that is newer than its stamp is read again, and one that is older is never kept.
func (s stamped[K, V]) get(key K, stamp func() (string, error), read func() (V, error)) (V, error) {
	now, err := stamp()
	if err != nil {
		var none V
		return none, err
	}
	if item := s.kept.Get(key); item != nil && item.Value().stamp == now {
		return item.Value().value, nil
	}
	value, err := read()
	if err == nil {
		s.kept.Set(key, stampedValue[V]{now, value}, ttlcache.NoTTL)
	}
	return value, err
}
