package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// pack PROJECT packs all results of a project that are due, as the orchestrator does.
func (s *service) pack(args []string) error {
	for {
		n, err := s.record.PackResults(s.t.Context(), args[0])
		if err != nil || n == 0 {
			return err
		}
	}
}

// sql STATEMENT changes the database as an accident or a person may.
func (s *service) sql(args []string) error {
	conn, err := pgx.Connect(s.t.Context(), s.url)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(s.t.Context(), args[0]); err != nil {
		return err
	}
	return conn.Close(s.t.Context())
}

// answered PATH checks that the last command has written what the API answers there; of
// text, after a line of its own.
func (s *service) answered(ts *testscript.TestScript, _ bool, args []string) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL+args[0], nil)
	ts.Check(err)
	answer, err := s.server.Client().Do(request)
	ts.Check(err)
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(answer.Body.Close())
	require.Equal(s.t, http.StatusOK, answer.StatusCode, "%s", body)
	stdout := ts.ReadFile("stdout")
	if answer.Header.Get("Content-Type") == "application/json" {
		var written, told bytes.Buffer
		ts.Check(json.Compact(&written, []byte(stdout)))
		ts.Check(json.Compact(&told, body))
		require.JSONEq(s.t, told.String(), written.String())
		return
	}
	if _, rest, named := strings.Cut(stdout, "\n\n"); named && strings.HasPrefix(stdout, "project ") {
		stdout = rest
	}
	require.Equal(s.t, string(body), stdout)
}
