// Package spare keeps unused memory for its next user: allocating large pieces takes as long
// as filling them, and collecting them as garbage takes longer.
//
// The package must not know what the memory is used for.
package spare

import "sync"

// Memory keeps values of a type. The zero value keeps none yet. It is safe for concurrent use,
// and gives up what is not used for some time. It must not be copied.
type Memory[T any] struct{ pool sync.Pool }

// Get returns a value that was kept, as it was put, or a new zero value.
func (m *Memory[T]) Get() *T {
	if kept, is := m.pool.Get().(*T); is {
		return kept
	}
	return new(T)
}

// Put keeps a value. Nobody may use it any more.
func (m *Memory[T]) Put(value *T) { m.pool.Put(value) }
