package api

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// askedTokens counts how often it is asked whose a token is.
type askedTokens struct {
	TokenRecord
	n int
}

func (a *askedTokens) PrincipalOf(context.Context, []byte) (store.Principal, error) {
	a.n++
	return store.Principal{Kind: KindCollector, Collector: fmt.Sprint("c", a.n)}, nil
}

func TestCachedTokensExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := &askedTokens{}
		cache := newTokenCache(asked, time.Now)
		expect := func(collector string) {
			t.Helper()
			p, err := cache.principal(t.Context(), "secret")
			require.NoError(t, err)
			require.Equal(t, collector, p.Collector)
		}
		expect("c1")
		time.Sleep(tokenTTL - time.Second)
		expect("c1")
		time.Sleep(2 * time.Second) // a token that is in use is asked for again like any other
		expect("c2")
		cache.forget("c1")
		expect("c2")
		cache.forget("c2")
		expect("c3")
		for i := range maxTokens {
			_, err := cache.principal(t.Context(), fmt.Sprint(i))
			require.NoError(t, err)
		}
		require.Equal(t, maxTokens, cache.known.Len())
		expect(fmt.Sprint("c", 4+maxTokens)) // it made way for others
	})
}
