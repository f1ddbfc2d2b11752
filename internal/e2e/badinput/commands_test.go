package badinput_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// session holds everything that one script created and must clean up.
type session struct {
	world      *world
	work       string
	vars       []string
	stack      *stack // the one in use
	stacks     map[string]*stack
	collectors []*process
	taken      map[string]net.Listener
}

type sessionKey struct{}

func of(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// commands returns the scripts' commands beyond those of testscript:
//
//	withstack NAME [UP FLAG...]    use this stack of the script, started if necessary; "shared" is shared by all scripts
//	stopstack NAME                 stop it, as Ctrl-C does
//	withcollector NAME CLASS [K=V...] [FLAG...]  start one more collector, with its own size class
//	goodjob [CLASS]                run a good job, which must succeed
//	exits CODE PROGRAM [ARG...]    like exec, and require this exit code
//	explains FILE THING REASON REMEDY  require that stdout, stderr or a file matches all three
//	http METHOD PATH [BODY] [TOKEN]    print status and body; "-" means none, the default token is the administrator's
//	upload DIR                     pack a suite unchecked and send it
//	waitfor PATTERN PROGRAM [ARG...]   run a program until its standard output matches
//	capture VAR                    store the last standard output
//	fill FILE BYTES                make a file of spaces
//	taken VAR, free VAR            listen on a loopback port; stop it
//	gone PATTERN                   require that no process has a matching command line
func (w *world) commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]struct {
		least int
		run   func(*session, *testscript.TestScript, []string) error
	}{
		"withstack": {1, (*session).withStack}, "stopstack": {1, (*session).stopStack}, "withcollector": {2, (*session).withCollector},
		"goodjob": {0, (*session).goodJob}, "exits": {2, (*session).exits}, "explains": {4, (*session).explains}, "http": {2, (*session).http},
		"upload": {1, (*session).upload}, "waitfor": {2, (*session).waitFor}, "capture": {1, (*session).capture}, "fill": {2, (*session).fill},
		"taken": {1, (*session).take}, "free": {1, (*session).free}, "gone": {1, (*session).gone},
	}
	commands := make(map[string]func(*testscript.TestScript, bool, []string))
	for name, c := range all {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < c.least {
				ts.Fatalf("usage: %s with at least %d arguments, never negated", name, c.least)
			}
			ts.Check(c.run(of(ts), ts, args))
		}
	}
	return commands
}

// close stops everything that the script started: its collectors, latest first, then
// its stacks.
func (s *session) close() error {
	var errs []error
	for _, p := range slices.Backward(s.collectors) {
		errs = append(errs, p.stop())
	}
	for _, stack := range s.stacks {
		errs = append(errs, stack.stop())
	}
	for _, l := range s.taken {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func (s *session) withStack(ts *testscript.TestScript, args []string) error {
	name := args[0]
	switch {
	case name == "shared":
		s.stack = s.world.shared
	case s.stacks[name] != nil:
		s.stack = s.stacks[name]
	default:
		started, err := startStack(s.world.benchloom(), filepath.Join(s.work, name), s.vars, args[1:])
		if err != nil {
			return err
		}
		s.stacks[name], s.stack = started, started
	}
	ts.Setenv("BENCHLOOM_STATE_DIR", s.stack.dir)
	api := s.stack.addresses[up.AddressAPI]
	ts.Setenv("API", api)
	ts.Setenv("API_PORT", api[strings.LastIndex(api, ":")+1:])
	ts.Setenv("TEMPORAL_ADDRESS", s.stack.addresses[up.AddressTemporal])
	return nil
}

func (s *session) stopStack(_ *testscript.TestScript, args []string) error {
	stack, ok := s.stacks[args[0]]
	if !ok {
		return fmt.Errorf("no stack %s", args[0])
	}
	delete(s.stacks, args[0])
	return stack.stop()
}

func (s *session) withCollector(ts *testscript.TestScript, args []string) error {
	name, class, rest := args[0], args[1], args[2:]
	environ := append(slices.Clone(s.vars), "TEMPORAL_ADDRESS="+s.stack.addresses[up.AddressTemporal])
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		environ, rest = append(environ, rest[0]), rest[1:]
	}
	argv := append([]string{
		s.world.benchloom(), "collector", "--name", name, "--size-class", class, "--pool", name,
		"--state-dir", filepath.Join(s.work, name), "--api", s.stack.addresses[up.AddressAPI],
		"--token-file", filepath.Join(s.stack.dir, "tokens", up.TokenCollector), "--co-located",
	}, rest...)
	p, err := start(filepath.Join(s.work, name+".log"), environ, argv...)
	if err != nil {
		return err
	}
	s.collectors = append(s.collectors, p)
	return s.stack.awaitCollector(s.world.t.Context(), name, p)
}

// goodJob runs a job on the stack's own collector, which has size class 1, unless
// another class is given.
func (s *session) goodJob(ts *testscript.TestScript, args []string) error {
	class := "1"
	if len(args) > 0 {
		class = args[0]
	}
	ts.Setenv("BENCHLOOM_STATE_DIR", s.stack.dir)
	for _, name := range []string{"BENCHLOOM_TOKEN", "BENCHLOOM_URL"} {
		ts.Setenv(name, "")
	}
	if err := ts.Exec("benchloom", "submit", "--adhoc", "--size-class", class, "--wait", "--", "sh", "-c", "echo fine"); err != nil {
		return fmt.Errorf("running a good job: %w", err)
	}
	return matches(ts.ReadFile("stderr"), `completed, success, 1/1 jobs, 1/1 test cases`)
}

func (s *session) exits(ts *testscript.TestScript, args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("exit code %d instead of %d", got, want)
	}
	return nil
}

func (s *session) explains(ts *testscript.TestScript, args []string) error {
	text := ts.ReadFile(args[0])
	for i, part := range []string{"thing", "reason", "remedy"} {
		if err := matches(text, args[i+1]); err != nil {
			return fmt.Errorf("the error does not name the %s: %w", part, err)
		}
	}
	return nil
}

func matches(text, pattern string) error {
	expression, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	if !expression.MatchString(text) {
		return fmt.Errorf("nothing matches %q in\n%s", pattern, text)
	}
	return nil
}

func (s *session) http(ts *testscript.TestScript, args []string) error {
	given := append(args[2:], "-", "")[:2]
	if len(args) < 4 {
		given[1] = s.stack.admin
	}
	var body io.Reader
	if given[0] != "-" {
		body = strings.NewReader(ts.ReadFile(given[0]))
	}
	request, err := http.NewRequestWithContext(s.world.t.Context(), args[0], s.stack.addresses[up.AddressAPI]+args[1], body)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if given[1] != "-" {
		request.Header.Set("Authorization", "Bearer "+given[1])
	}
	client := &http.Client{Transport: s.stack.transport, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(ts.Stdout(), "%d\n%s\n", response.StatusCode, answer)
	return err
}

// upload prints the API's answer.
func (s *session) upload(ts *testscript.TestScript, args []string) error {
	bundle, err := suite.Pack(ts.MkAbs(args[0]))
	if err != nil {
		return err
	}
	if _, err = s.stack.api.PutSuite(s.world.t.Context(), bundle.Hash, bundle.Archive); err != nil {
		_, err = fmt.Fprintln(ts.Stderr(), err)
		return err
	}
	_, err = fmt.Fprintln(ts.Stdout(), "accepted")
	return err
}

func (s *session) waitFor(ts *testscript.TestScript, args []string) error {
	expression, err := regexp.Compile("(?m)" + args[0])
	if err != nil {
		return err
	}
	return await(func() (bool, error) {
		err := ts.Exec(args[1], args[2:]...)
		return err == nil && expression.MatchString(ts.ReadFile("stdout")), nil
	})
}

func (s *session) capture(ts *testscript.TestScript, args []string) error {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
	return nil
}

func (s *session) fill(ts *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(" ", n)), 0o644)
}

func (s *session) take(ts *testscript.TestScript, args []string) error {
	l, err := listen(s.world.t.Context())
	if err != nil {
		return err
	}
	if s.taken == nil {
		s.taken = make(map[string]net.Listener)
	}
	s.taken[args[0]] = l
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return nil
}

// listen takes a port that no other process takes for some minutes once it is free again.
func listen(ctx context.Context) (net.Listener, error) {
	port, err := devstack.FreePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func (s *session) free(_ *testscript.TestScript, args []string) error {
	l, ok := s.taken[args[0]]
	if !ok {
		return fmt.Errorf("port %s is not taken; taken are %v", args[0], slices.Collect(maps.Keys(s.taken)))
	}
	delete(s.taken, args[0])
	return l.Close()
}

func (s *session) gone(_ *testscript.TestScript, args []string) error {
	expression, err := regexp.Compile(args[0])
	if err != nil {
		return err
	}
	left, err := processes(func(line, _ string) bool { return expression.MatchString(line) })
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("still running: %v", left)
	}
	return err
}
