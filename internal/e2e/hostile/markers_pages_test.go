package hostile_test

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/up"
)

var reference = regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`)

// inPages follows the links from the first page, as a stranger and signed in, and looks at
// pages for what is not there, and at what forms answer.
func (h *hunt) inPages(t *testing.T) {
	admin := h.token(t, up.TokenUser)
	wrong := "blm" + "_" + h.plant(t, "token pasted into an address")
	kinds, told := make(map[string]bool), 0
	for _, token := range []string{"", admin} {
		seen := map[string]bool{"/": true}
		for next := []string{"/"}; len(next) > 0; next = next[1:] {
			body := h.page(t, next[0], token)
			told += bytes.Count(body, []byte(h.tellTale))
			for _, found := range reference.FindAllSubmatch(body, -1) {
				link, _, _ := strings.Cut(html.UnescapeString(string(found[1])), "#")
				// Filters and orders are tried one by one, not all with all; the way to sign in
				// leads from its own page to itself.
				if !seen[link] && !strings.Contains(link, "&") && strings.Count(link, "sign-in") < 2 {
					seen[link] = true
					next = append(next, link)
				}
			}
			path, _, _ := strings.Cut(next[0], "?")
			if kind := strings.Split(path, "/")[1]; !kinds[kind+token] {
				kinds[kind+token] = true
				h.page(t, path+"?token="+wrong, token)
			}
			require.Less(t, len(seen), 2000, "the links never end")
		}
		for _, kind := range []string{"", "requests", "jobs", "runs", "projects", "collectors", "queues", "sizeclasses", "audit", "help"} {
			require.True(t, kinds[kind+token], "no page of /%s was read, of %d", kind, len(seen))
		}
		t.Logf("%d pages", len(seen))
	}
	require.Greater(t, told, 10)
	for path, form := range map[string]url.Values{
		"/sign-in": {"token": {wrong}}, "/requests/" + h.values["request"][0] + "/cancel": {"reason": {"again"}}, "/requests/nothing/cancel": {"token": {wrong}},
	} {
		for _, cookie := range []string{wrong, admin} {
			h.clean(t, "the answer to a form of "+path, h.post(t, path, cookie, form))
		}
	}
}

// page reads a page, as often as it takes to get an answer that the rate limits allow.
func (h *hunt) page(t *testing.T, path, token string) []byte {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(200 * time.Millisecond) {
		status, body := h.get(t, h.url+path, token)
		require.Less(t, status, 500, path)
		h.clean(t, "page "+path, body)
		if status != http.StatusTooManyRequests {
			return body
		}
		require.True(t, time.Now().Before(end), "page %s is refused for its rate all the time", path)
	}
}

// post sends a form of a page. It returns the answer with its headers.
func (h *hunt) post(t *testing.T, path, cookie string, form url.Values) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", h.url)
	request.Header.Set("Cookie", "benchloom_"+strings.TrimPrefix(h.url, "http://127.0.0.1:")+"="+cookie)
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var all bytes.Buffer
	_ = response.Header.Write(&all)
	_, err = io.Copy(&all, response.Body)
	require.NoError(t, err)
	return all.Bytes()
}

// inStreams reads what follows pages and outputs, and the revisions behind.
func (h *hunt) inStreams(t *testing.T) {
	subjects := []string{apiclient.SubjectService, "weather"}
	for _, id := range h.values["request"] {
		subjects = append(subjects, "request:"+id)
	}
	for _, key := range h.values["job"] {
		subjects = append(subjects, "job:"+key)
	}
	said := 0
	for i, subject := range subjects {
		query := "?subject=" + url.QueryEscape(subject)
		_, body := h.get(t, h.url+"/api/v1/revision"+query, h.token(t, up.TokenUser))
		h.clean(t, "the revision of "+subject, body)
		if i < 5 { // a stream is read for a second
			_, body = h.get(t, h.url+"/live"+query+"&since=0", h.token(t, up.TokenUser))
			h.clean(t, "the stream of "+subject, body)
			said += bytes.Count(body, []byte("event: revision"))
		}
	}
	require.Positive(t, said)
}

// inTheWebUI reads what an administrator's browser gets from Temporal.
func (h *hunt) inTheWebUI(t *testing.T) {
	ui, told := h.Up.Addresses[up.AddressTemporalUI], 0
	list, err := h.temporal(t).ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{PageSize: 50})
	require.NoError(t, err)
	paths := []string{"/", "/api/v1/settings", "/api/v1/namespaces", "/api/v1/cluster-info", "/api/v1/namespaces/benchloom/workflows", "/api/v1/namespaces/benchloom/schedules"}
	for _, e := range list.GetExecutions() {
		one := "/api/v1/namespaces/benchloom/workflows/" + url.PathEscape(e.GetExecution().GetWorkflowId())
		paths = append(paths, one, one+"/history")
	}
	for _, path := range paths {
		_, body := h.get(t, ui+path, h.token(t, up.TokenUser))
		h.clean(t, "the Web UI's "+path, body)
		told += bytes.Count(body, []byte("request/adhoc/"))
	}
	require.Positive(t, told, "it shows workflows")
}
