package pages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/browser"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// shared holds what the tests use together.
var shared struct {
	onceStack, onceBrowser, onceGateway sync.Once
	stack                               *livestack.Stack
	browser                             *browser.Browser
	stackErr, browserErr                error
	// gateway is set once its releases have ended.
	gateway string
}

func TestMain(m *testing.M) {
	code := m.Run()
	report := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if shared.browser != nil {
		report(shared.browser.Stop())
	}
	if shared.stack != nil {
		report(shared.stack.Stop(code == 0))
	}
	os.Exit(code)
}

// sharedBrowser is a browser of whose tabs none sees the cookies of another.
func sharedBrowser(t *testing.T) *browser.Browser {
	t.Helper()
	shared.onceBrowser.Do(func() { shared.browser, shared.browserErr = browser.Start() })
	require.NoError(t, shared.browserErr)
	return shared.browser
}

// programs finds the binaries as the tests of internal/e2e do.
func programs() livestack.Programs {
	path := func(variable, name string) string {
		if named := os.Getenv(variable); named != "" {
			return named
		}
		return filepath.Join("../../../bin", name)
	}
	return livestack.Programs{Benchloom: path("BENCHLOOM_BIN", "benchloom"), Temporal: path("BENCHLOOM_TEMPORAL_DEV", "temporal-dev")}
}

// collectors are the arguments of a stack with two slots of class 1, named local-1 and
// local-2, and one of class 2, on any machine.
var collectors = []string{"--collectors", "2x1,1x2", "--share-cores", "--co-located"}

// service is a running stack with the token of its operator.
type service struct {
	*livestack.Stack
	url, token string
}

// sharedService is a stack that tests use together. What they submit stays.
func sharedService(t *testing.T) service {
	t.Helper()
	shared.onceStack.Do(func() {
		shared.stack, shared.stackErr = livestack.Start(context.Background(), programs(), collectors...)
	})
	require.NoError(t, shared.stackErr)
	return serviceOf(t, shared.stack)
}

// sharedGateway is a project of the shared service with releases that have ended. Nobody
// changes it.
func sharedGateway(t *testing.T) (project string) {
	t.Helper()
	s := sharedService(t)
	shared.onceGateway.Do(func() {
		s.releasedGateway(t, "gateway")
		shared.gateway = "gateway"
	})
	require.NotEmpty(t, shared.gateway, "its releases have failed in another test")
	return shared.gateway
}

// ownService is a stack of the test's own, with nothing in it.
func ownService(t *testing.T) service {
	t.Helper()
	s, err := livestack.Start(t.Context(), programs(), collectors...)
	require.NoError(t, err)
	t.Cleanup(func() {
		failed := t.Failed()
		if err := s.Stop(!failed); err != nil {
			t.Log(err)
			require.True(t, failed, "the stack did not stop well")
		}
	})
	return serviceOf(t, s)
}

func serviceOf(t *testing.T, s *livestack.Stack) service {
	t.Helper()
	token, err := devstack.ReadToken(s.State(), up.TokenUser)
	require.NoError(t, err)
	return service{Stack: s, url: s.Up.Addresses[up.AddressAPI], token: token}
}
