package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// sharedToken names the token that collectors share.
const sharedToken = "shared " + api.RoleCollector

// machines sends requests as the collectors that they concern, each with its own token,
// which it gets with the shared one. What is about no collector is c1's; a collector that
// gets no token of its own tries the shared one.
type machines struct {
	*bundle
	mu   sync.Mutex
	runs map[string]string // collectors by the runs that they have asked to start
}

func (m *machines) RoundTrip(r *http.Request) (*http.Response, error) {
	name, err := m.concerns(r)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+m.tokenOf(r.Context(), name))
	return m.server.Client().Transport.RoundTrip(r)
}

func (m *machines) tokenOf(ctx context.Context, name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if host := bench.HostOfSlot(name); host != "" {
		name = host
	}
	if m.tokens["own "+name] == "" {
		if err := m.ownToken(ctx, name); err != nil {
			return m.tokens[sharedToken]
		}
	}
	return m.tokens["own "+name]
}

// concerns returns the collector that a request is from.
func (m *machines) concerns(r *http.Request) (string, error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	var body struct{ Name, Collector string }
	if last := parts[len(parts)-1]; last == "register" || last == "start" {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return "", err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		_ = json.Unmarshal(text, &body) // the API says what is wrong with it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(parts) == 3 && parts[0] == "collectors":
		return parts[1], nil
	case body.Name != "":
		return body.Name, nil
	case body.Collector != "":
		m.runs[parts[1]] = body.Collector
		return body.Collector, nil
	case parts[0] == "runs" && m.runs[parts[1]] != "":
		return m.runs[parts[1]], nil
	}
	return "c1", nil
}

// ownToken gives a collector that nobody has invited its own token.
func (b *bundle) ownToken(ctx context.Context, name string) error {
	secret, err := api.NewToken(rand.Reader)
	if err != nil {
		return err
	}
	own := apiclient.OwnToken{Name: name, SecretHash: sha256Hex(secret), Machines: []string{"machine-of-" + name}}
	if err := b.shared.PutOwnToken(ctx, own); err != nil {
		return err
	}
	b.tokens["own "+name] = secret
	return nil
}
