package devstack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// DefaultStateDir is the default state directory of a stand-alone installation,
// relative to the working directory.
const DefaultStateDir = ".benchloom"

// stateVersion is the version of the layout below the state directory.
const stateVersion = 1

const (
	versionFile   = "version"
	lockFile      = "lock"
	upFile        = "up.json"
	processesFile = "processes.json"
	tokensDir     = "tokens"
	logsDir       = "logs"
)

var (
	// ErrStateTooNew is returned for a state directory that a newer version of
	// the program has written.
	ErrStateTooNew = errors.New("the state directory was written by a newer version")

	// ErrNotRunning is returned to clients when no stack runs on a state
	// directory.
	ErrNotRunning = errors.New("nothing is running on the state directory")
)

// AlreadyRunningError is returned when another process holds the state
// directory.
type AlreadyRunningError struct {
	Dir string
	PID int // 0 when the holder has not written it yet
}

// Error names the holder and its directory.
func (e *AlreadyRunningError) Error() string {
	return fmt.Sprintf("state directory %s is in use by process %d: stop that process, or use another state directory", e.Dir, e.PID)
}

// State is a state directory held by this process.
type State struct {
	dir    string
	lock   *flock.Flock
	tokens sync.Mutex

	publishing sync.Mutex
	published  *Up // nil: not yet
	// running are the processes that a supervisor has started, by name.
	running map[string]int
}

// OpenState creates the directory if absent (mode 0700), checks the version of its
// contents and holds it against other processes until Close. The errors are
// ErrStateTooNew, *AlreadyRunningError, and one that says what to do about a
// directory that cannot be written.
func OpenState(dir string) (*State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving the state directory's path: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, notWritable(dir, err)
	}
	s := &State{dir: dir, lock: flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDWR|os.O_CREATE))}
	if err := s.hold(); err != nil {
		_ = s.lock.Close()
		return nil, err
	}
	if err := s.checkVersion(); err != nil {
		_ = s.lock.Close()
		return nil, err
	}
	for _, name := range []string{tokensDir, logsDir} {
		if _, err := s.Subdir(name); err != nil {
			_ = s.lock.Close()
			return nil, err
		}
	}
	return s, nil
}

func notWritable(dir string, err error) error {
	return fmt.Errorf("state directory %s cannot be used: %w: make it writable for this user (uid %d) or use another state directory", dir, err, os.Getuid())
}

// hold takes the lock and writes this process's ID into the lock file, for the error message
// of other processes.
func (s *State) hold() error {
	if err := supported(); err != nil {
		return fmt.Errorf("locking state directory %s: %w", s.dir, err)
	}
	held, err := s.lock.TryLock()
	switch {
	case errors.As(err, new(*fs.PathError)):
		return notWritable(s.dir, err)
	case err != nil:
		return fmt.Errorf("locking state directory %s: %w", s.dir, err)
	case !held:
		text, _ := os.ReadFile(s.lock.Path())
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return &AlreadyRunningError{Dir: s.dir, PID: pid}
	}
	if err := os.WriteFile(s.lock.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return notWritable(s.dir, err)
	}
	return nil
}

func (s *State) checkVersion() error {
	text, err := os.ReadFile(s.Path(versionFile))
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeAtomically(s.Path(versionFile), []byte(strconv.Itoa(stateVersion)+"\n")); err != nil {
			return notWritable(s.dir, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the version of state directory %s: %w", s.dir, err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil || version < 1:
		return fmt.Errorf("file %s has %q where a version number should be: this is no state directory, use another one", s.Path(versionFile), strings.TrimSpace(string(text)))
	case version > stateVersion:
		return fmt.Errorf("state directory %s has version %d, this program knows up to %d: use the newer program, or another state directory: %w", s.dir, version, stateVersion, ErrStateTooNew)
	}
	return nil
}

// Close removes the file that tells clients of a running stack and releases the
// directory.
func (s *State) Close() error {
	err := os.Remove(s.Path(upFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.lock.Close())
}

// Dir returns the absolute path of the directory.
func (s *State) Dir() string { return s.dir }

// Path returns an absolute path below the directory.
func (s *State) Path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// Subdir returns a directory directly below the state directory, created with
// mode 0700 if absent.
func (s *State) Subdir(name string) (string, error) {
	path := s.Path(name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", notWritable(s.dir, err)
	}
	return path, nil
}

// LogFile returns the path of the named process's log.
func (s *State) LogFile(name string) string { return s.Path(logsDir, name+".log") }

// tokenPrefix makes a token recognisable, for people and for secret scanners.
const tokenPrefix = "blm_"

var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Token returns the secret of the given name. If absent, it is created: 32 random
// bytes in base64url with a prefix, in a file that only this user may read.
func (s *State) Token(name string) (string, error) {
	if !tokenName.MatchString(name) {
		return "", fmt.Errorf("token name %q is not allowed: use lower-case letters, digits and hyphens", name)
	}
	s.tokens.Lock()
	defer s.tokens.Unlock()
	token, err := ReadToken(s.dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	if err := writeAtomically(s.Path(tokensDir, name), []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("storing token %s: %w", name, err)
	}
	return token, nil
}

// ReadToken reads a secret that Token created in the given state directory, for
// clients. The error wraps fs.ErrNotExist if there is none.
func ReadToken(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, tokensDir, name))
	if err != nil {
		return "", fmt.Errorf("reading token %s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Up holds the addresses and processes of the stack that runs on a state directory.
type Up struct {
	// Addresses by what is served there, as the program names it: for example
	// "api", "temporal", "ui", "postgres".
	Addresses map[string]string `json:"addresses"`
	// Processes are process IDs by name.
	Processes map[string]int `json:"processes"`
	// PID is the process that holds the state directory and Started identifies
	// it beyond that number; StartedAt is for people. WriteUp sets all three.
	PID       int       `json:"pid"`
	Started   string    `json:"started"`
	StartedAt time.Time `json:"started_at"`
}

// WriteUp publishes the stack for clients; Close withdraws it.
func (s *State) WriteUp(up Up, now time.Time) error {
	up.PID = os.Getpid()
	started, err := startIdentity(up.PID)
	if err != nil {
		return fmt.Errorf("publishing the running stack: %w", err)
	}
	up.Started = started
	up.StartedAt = now.UTC()
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.published = &up
	return s.publish()
}

// publish writes the published addresses with the present processes.
func (s *State) publish() error {
	up := *s.published
	up.Processes = make(map[string]int)
	maps.Copy(up.Processes, s.published.Processes)
	for name, pid := range s.running {
		if pid == 0 {
			delete(up.Processes, name)
		} else {
			up.Processes[name] = pid
		}
	}
	return writeJSON(s.Path(upFile), up)
}

// setProcess updates the published processes when one has started or, with pid 0,
// ended.
func (s *State) setProcess(name string, pid int) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if s.running == nil {
		s.running = make(map[string]int)
	}
	s.running[name] = pid
	if s.published == nil {
		return nil
	}
	return s.publish()
}

// ReadUp reads how clients reach the stack that runs on the given state directory. The
// error wraps ErrNotRunning if none runs.
func ReadUp(dir string) (Up, error) {
	var up Up
	err := readJSON(filepath.Join(dir, upFile), &up)
	if errors.Is(err, fs.ErrNotExist) {
		return Up{}, fmt.Errorf("%w: %s", ErrNotRunning, dir)
	}
	if err != nil {
		return Up{}, err
	}
	if !identity(up.PID, up.Started) {
		return Up{}, fmt.Errorf("%w: %s", ErrNotRunning, dir)
	}
	return up, nil
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return writeAtomically(path, append(text, '\n'))
}

func readJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// writeAtomically replaces a file's content so that a reader, even after a crash,
// sees all of the old or all of the new. Only this user may read it.
func writeAtomically(path string, content []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
