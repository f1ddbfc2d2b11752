package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls the API. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// Timeouts of one call. A server that hangs must not hold a collector; [Retry] calls
// it again.
const (
	callTimeout     = 30 * time.Second
	transferTimeout = 3 * time.Minute
	// readTimeout bounds the reading of results: ten thousand benchmarks take seconds, and
	// several times as long where other programs use the machine.
	readTimeout = 2 * time.Minute
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 256 << 20

// New returns a client of the API at baseURL, such as http://127.0.0.1:7480. Without
// a token, it can only read, and only if the API allows that. A nil httpClient means
// one with Go's defaults.
func New(baseURL, token string, httpClient *http.Client) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("invalid address %q of the Benchloom API: write one such as http://127.0.0.1:7480", baseURL)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("invalid API token: it holds white space or control characters; give it as it was printed, beginning with blm_")
	}
	own := http.Client{}
	if httpClient != nil {
		own = *httpClient
	}
	// The API redirects nobody. Followed, a redirection to a login page would look like a
	// success, and a POST would become a GET.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(u.String(), "/"), token: token, http: &own}, nil
}

// BaseURL returns the address of the API.
func (c *Client) BaseURL() string { return c.base }

// Token returns the token that is sent; empty: none.
func (c *Client) Token() string { return c.token }

// call describes one call of the API.
type call struct {
	method string
	// path is below the base URL; its parts are escaped.
	path  string
	query url.Values
	// in is sent as JSON, unless body is set.
	in any
	// body is sent unchanged, with its type and encoding.
	body        []byte
	contentType string
	encoding    string
	// stream is sent instead of body: so many bytes of it.
	stream io.Reader
	size   int64
	// out receives the JSON of the answer, unless nil.
	out any
	// timeout bounds the call; 0 means callTimeout.
	timeout time.Duration
}

// v1 returns a path below /api/v1. It escapes the parts.
func v1(parts ...string) string {
	path := "/api/v1"
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

// do makes a call and reads the answer.
func (c *Client) do(ctx context.Context, call call) (http.Header, []byte, error) {
	bound := call.timeout
	if bound == 0 {
		bound = callTimeout
	}
	bounded, stop := context.WithTimeout(ctx, bound)
	defer stop()
	response, err := c.send(bounded, ctx, call)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, nil, transportError(ctx, c.base, err)
	}
	if len(answer) > maxAnswer {
		return nil, nil, fmt.Errorf("the answer of %s %s is larger than %d MB", call.method, call.path, maxAnswer>>20)
	}
	if call.out != nil {
		if err := json.Unmarshal(answer, call.out); err != nil {
			return nil, nil, fmt.Errorf("reading the answer of %s%s: %w; is the API of a similar version?", c.base, call.path, err)
		}
	}
	return response.Header, answer, nil
}

// send makes a call in the context bounded; caller is the context without its timeout,
// for errors. The caller of send closes the body.
func (c *Client) send(bounded, caller context.Context, call call) (*http.Response, error) {
	body := call.body
	if call.in != nil {
		text, err := json.Marshal(call.in)
		if err != nil {
			return nil, fmt.Errorf("encoding the body of %s %s: %w", call.method, call.path, err)
		}
		body, call.contentType = text, "application/json"
	}
	target := c.base + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(bounded, call.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("building the request %s %s: %w", call.method, call.path, err)
	}
	if call.stream != nil {
		request.Body, request.ContentLength, request.GetBody = io.NopCloser(io.LimitReader(call.stream, call.size)), call.size, nil
	}
	request.Header.Set("User-Agent", "benchloom")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if call.contentType != "" {
		request.Header.Set("Content-Type", call.contentType)
	}
	if call.encoding != "" {
		request.Header.Set("Content-Encoding", call.encoding)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, transportError(caller, c.base, err)
	}
	if err := checkAnswer(response, c.base); err != nil {
		defer response.Body.Close()
		return nil, err
	}
	return response, nil
}

// get reads JSON.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodGet, path: path, query: query, out: &out})
	return out, err
}

// read is get for results.
func read[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodGet, path: path, query: query, out: &out, timeout: readTimeout})
	return out, err
}

// post sends JSON and reads JSON.
func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: path, in: in, out: &out})
	return out, err
}

// set adds a parameter that is not empty.
func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}
