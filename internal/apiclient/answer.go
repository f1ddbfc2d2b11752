package apiclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxProblemBody bounds the body of an error, in bytes.
const maxProblemBody = 1 << 20

// checkAnswer returns nil for an answer of the API that reports success, else a
// [*Problem]. All answers of the API carry [HeaderAPI], and its errors a type that
// begins with [ProblemPrefix]. An answer with neither came from something else, even
// with status 200, and says nothing about the call.
func checkAnswer(response *http.Response, base string) error {
	success := response.StatusCode >= 200 && response.StatusCode <= 299
	if success && response.Header.Get(HeaderAPI) != "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblemBody))
	p := &Problem{}
	if success || err != nil || json.Unmarshal(body, p) != nil || !p.FromAPI() {
		p = &Problem{Detail: foreign(response, body, base)}
	}
	p.Status = response.StatusCode
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	p.RequestID = response.Header.Get(HeaderRequestID)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// foreign describes an answer that is not the API's, and what to do about it.
func foreign(response *http.Response, body []byte, base string) string {
	said := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, string(body))
	if to := response.Header.Get("Location"); to != "" {
		said = "see " + to
	}
	return fmt.Sprintf("%s answered %s, which is not an answer of the Benchloom API: %.200q; %s", base, response.Status, said, remedy(response.StatusCode))
}

// remedy says what to do about an answer of something between here and the API.
func remedy(status int) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "something between this machine and the API limits the size of bodies: raise its limit to 20 MB (nginx: client_max_body_size)"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return "something between this machine and the API asks for a login of its own: let it pass /api on without one"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "does the proxy there reach the API, and is that running?"
	case http.StatusNotFound:
		return "is the address right? if there is a proxy, let it pass /api on to the API"
	}
	switch status / 100 {
	case 2:
		return "is the address right, and the API no older than this program?"
	case 3:
		return "name the address of the API itself: redirections are not followed"
	}
	return "is the address right?"
}
