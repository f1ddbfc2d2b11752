package spare_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/spare"
)

// No two users have the same value at once, and what was put may come back.
func TestAValueHasOneUser(t *testing.T) {
	t.Parallel()
	var memory spare.Memory[[]int]
	require.Empty(t, *memory.Get())
	var users sync.WaitGroup
	for user := range 8 {
		users.Go(func() {
			for range 1000 {
				mine := memory.Get()
				*mine = append((*mine)[:0], user, user)
				for _, v := range *mine {
					if v != user {
						t.Errorf("user %d finds the value of user %d", user, v)
					}
				}
				memory.Put(mine)
			}
		})
	}
	users.Wait()
}
