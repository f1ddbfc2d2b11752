package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// caller is the owner of a token.
type caller struct {
	kind callerKind
	name string
	// queues are the task queues of a collector.
	queues []string
}

type callerKind int

const (
	stranger  callerKind = iota // the token is not known
	service                     // one of Benchloom's own processes
	collector                   // polls its own task queues
	reader                      // a person or a program that looks
	admin                       // a person who operates the workflows
)

const (
	// knownFor is the time after which the API is asked again about a token. Given the API's own
	// memory and the longest poll, a revoked token ends within a minute.
	knownFor = 20 * time.Second
	// unknownFor is the same for a token unknown to the API.
	unknownFor = 5 * time.Second
	// askAgain is the time after which an API that did not answer is asked again.
	askAgain = 5 * time.Second
	// askBound bounds one question.
	askBound = 3 * time.Second
	// maxCallers bounds the remembered tokens.
	maxCallers = 10_000
	// maxAnswer bounds an answer of the API, in bytes.
	maxAnswer = 1 << 20
	// tokenPrefix begins every token of the API.
	tokenPrefix = "blm_"
)

// errAPIAway reports a token whose owner cannot be found out at present.
var errAPIAway = errors.New("the Benchloom API does not answer, which knows this token")

// callers tells the owners of tokens. It knows the token of Benchloom's own processes itself;
// about all others it asks the API, with the token in question: there is no further secret,
// and the API decides on expiry and revocation. Known callers stay known while the API is
// away, when no token can be revoked either.
type callers struct {
	own  [sha256.Size]byte
	api  string // empty if there are no other tokens
	http *http.Client
	now  func() time.Time

	asking singleflight.Group
	mu     sync.Mutex
	known  map[[sha256.Size]byte]knownCaller
}

type knownCaller struct {
	caller
	asked time.Time // when the API told it
	until time.Time // when it is to be asked again
}

// newCallers reads the token of Benchloom's own processes. Without an api, no other token is
// known. A caFile holds the authorities of the API's certificate; empty means those of the system.
func newCallers(tokenFile, api, caFile string) (*callers, []byte, error) {
	text, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 20 || strings.ContainsAny(token, " \t\r\n") {
		return nil, nil, fmt.Errorf("--token-file %s: it does not hold one token of at least 20 characters", tokenFile)
	}
	c := &callers{
		own: sha256.Sum256([]byte(token)), api: strings.TrimRight(api, "/"), now: time.Now,
		known: make(map[[sha256.Size]byte]knownCaller), http: &http.Client{Timeout: askBound},
	}
	// The API redirects nobody; a token must not follow a redirection elsewhere.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var pool *x509.CertPool
	if caFile != "" {
		if pool, err = loadPool(caFile); err != nil {
			return nil, nil, fmt.Errorf("--api-ca: %w", err)
		}
	}
	c.http.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
	}
	return c, []byte(token), nil
}

// of returns the owner of a token, as the API said at most maxAge ago, if it answers.
func (c *callers) of(ctx context.Context, token string, maxAge time.Duration) (caller, error) {
	hash := sha256.Sum256([]byte(token))
	if hash == c.own {
		return caller{kind: service, name: "benchloom"}, nil
	}
	if c.api == "" || !strings.HasPrefix(token, tokenPrefix) {
		return caller{}, nil
	}
	now := c.now()
	c.mu.Lock()
	found, ok := c.known[hash]
	c.mu.Unlock()
	if ok && now.Before(found.until) && now.Sub(found.asked) <= maxAge {
		return found.caller, nil
	}
	asked, err, _ := c.asking.Do(string(hash[:]), func() (any, error) { return c.ask(context.WithoutCancel(ctx), token) })
	if err != nil {
		if !ok || found.kind == stranger {
			return caller{}, err
		}
		found.until, found.asked = now.Add(askAgain), now
		c.remember(hash, found)
		return found.caller, nil
	}
	who, _ := asked.(caller)
	fresh := knownCaller{caller: who, asked: now, until: now.Add(knownFor)}
	if who.kind == stranger {
		fresh.until = now.Add(unknownFor)
	}
	c.remember(hash, fresh)
	return who, nil
}

func (c *callers) remember(hash [sha256.Size]byte, k knownCaller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCallers {
		// Forget first the tokens that anybody can invent.
		for old, is := range c.known {
			if is.kind == stranger || c.now().After(is.until) {
				delete(c.known, old)
			}
		}
		if len(c.known) >= maxCallers {
			clear(c.known)
		}
	}
	c.known[hash] = k
}

// ask asks the API who has the token. The error means that the API did not tell.
func (c *callers) ask(ctx context.Context, token string) (caller, error) {
	ctx, stop := context.WithTimeout(ctx, askBound)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.api+"/api/v1/info", nil)
	if err != nil {
		return caller{}, fmt.Errorf("%w: %w", errAPIAway, err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.http.Do(request)
	if err != nil {
		return caller{}, fmt.Errorf("%w: %w", errAPIAway, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return caller{}, nil
	default:
		return caller{}, fmt.Errorf("%w: it says %s", errAPIAway, answer.Status)
	}
	var info struct {
		Principal  string   `json:"principal"`
		Role       string   `json:"role"`
		Project    string   `json:"project"`
		Collector  string   `json:"collector"`
		TaskQueues []string `json:"task_queues"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&info); err != nil {
		return caller{}, fmt.Errorf("%w: reading its answer: %w", errAPIAway, err)
	}
	switch {
	case info.Collector != "":
		return caller{kind: collector, name: info.Collector, queues: info.TaskQueues}, nil
	case info.Role == "admin" && info.Project == "":
		return caller{kind: admin, name: info.Principal}, nil
	case info.Role == "reader" || info.Role == "writer" || info.Role == "admin":
		// A token of one project changes nothing here: workflows are of all projects.
		return caller{kind: reader, name: info.Principal}, nil
	}
	return caller{}, nil // the token that collectors share opens nothing here
}
