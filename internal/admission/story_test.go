package admission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

// The stories in testdata say in plain lines which requests there are and in which order they stand. A line is
//
//	policy <spec|upstream>
//	finished <tag>...
//	request <id> [tag=] [type=] [parent=] [pr=] [created=] [date=] [status=]
//	finish <id>              the request completes; what follows holds afterwards
//	order <id>...            the order, first to last
//	admissible [<id>...]     exactly these may start
//	level <id> <n>
//	reason <id> <words>      the reason contains these words
//	blocked <id> <words>     the request may not start, and why contains these words
//
// The tag defaults to the ID, the type to master, the status to artifacts_ready. created and date are days, or
// instants as in RFC 3339.

func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := story{history: history{completed: map[string]bool{}}, policy: admission.Spec}
			for i, line := range strings.Split(string(text), "\n") {
				line, _, _ = strings.Cut(line, "#")
				if words := strings.Fields(line); len(words) > 0 {
					s.line = fmt.Sprintf("%s:%d: %s", file, i+1, strings.TrimSpace(line))
					s.play(t, words[0], words[1:])
				}
			}
			require.Positive(t, s.checks, "%s checks nothing", file)
		})
	}
}

type story struct {
	history
	policy admission.Policy
	line   string
	checks int
}

func (s *story) play(t *testing.T, verb string, words []string) {
	t.Helper()
	switch verb {
	case "policy":
		s.policy = admission.Policy(words[0])
	case "finished":
		for _, tag := range words {
			s.completed[tag] = true
		}
	case "request":
		s.requests = append(s.requests, s.request(t, words[0], words[1:]))
	case "finish":
		at := slices.IndexFunc(s.requests, func(r admission.Request) bool { return string(r.ID) == words[0] })
		require.GreaterOrEqual(t, at, 0, s.line)
		s.completed[s.requests[at].Tag] = true
		s.requests = slices.Delete(s.requests, at, at+1)
	default:
		s.checks++
		s.check(t, verb, words)
	}
}

func (s *story) check(t *testing.T, verb string, words []string) {
	t.Helper()
	positions := admission.Order(s.requests, s.completed, s.policy)
	if verb == "order" {
		require.Equal(t, words, ids(positions), s.line)
		return
	}
	if verb == "admissible" {
		got := []string{}
		for _, p := range positions {
			if p.Admissible {
				got = append(got, string(p.Request.ID))
			}
		}
		require.Equal(t, append([]string{}, words...), got, s.line)
		return
	}
	at := slices.IndexFunc(positions, func(p admission.Position) bool { return string(p.Request.ID) == words[0] })
	require.GreaterOrEqual(t, at, 0, s.line)
	p, rest := positions[at], strings.Join(words[1:], " ")
	switch verb {
	case "level":
		require.Equal(t, rest, strconv.Itoa(p.Level), s.line)
	case "reason":
		require.Contains(t, p.Reason, rest, s.line)
	case "blocked":
		require.Contains(t, p.Blocked, rest, s.line)
		require.False(t, p.Admissible, s.line)
	default:
		t.Fatalf("%s: unknown verb", s.line)
	}
}

func (s *story) request(t *testing.T, id string, fields []string) admission.Request {
	t.Helper()
	r := admission.Request{ID: bench.RequestID(id), Tag: id, Type: bench.Master, Status: bench.ArtifactsReady}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		var err error
		switch name {
		case "tag":
			r.Tag = value
		case "type":
			r.Type = bench.RequestType(value)
		case "parent":
			r.ParentTag = value
		case "pr":
			r.PR, err = strconv.Atoi(value)
		case "created":
			r.CreatedAt, err = instant(value)
		case "date":
			r.CommitDate, err = instant(value)
		case "status":
			r.Status = bench.RequestStatus(value)
		default:
			t.Fatalf("%s: unknown field %s", s.line, name)
		}
		require.NoError(t, err, s.line)
	}
	return r
}

func instant(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	return time.Parse(time.RFC3339, text)
}
