package accounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// lockEvery is the interval of attempts to get the lock of the pool.
	lockEvery = 20 * time.Millisecond
	// locksDir is emptied when the machine restarts.
	locksDir = "/run/benchloom"
	// homeDir is the home of all accounts in the system's list: empty, and writable by nobody. The environment of commands
	// names another, which is emptied for each of them.
	homeDir = "/var/lib/benchloom/home"
)

// System returns the accounts of this machine.
func System() Pool { return Pool{Locks: locksDir, Directory: system{}} }

// system is this machine's list of users.
type system struct{}

func (system) Lookup(name string) (Account, bool, error) {
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		return Account{}, false, nil
	}
	if err != nil {
		return Account{}, false, fmt.Errorf("looking up account %s: %w", name, err)
	}
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return Account{}, false, fmt.Errorf("looking up account %s: %w", name, err)
	}
	if uid == 0 || gid == 0 {
		return Account{}, false, fmt.Errorf("account %s has the rights of root: give it a user and group of its own", name)
	}
	return Account{Name: name, UID: uint32(uid), GID: uint32(gid)}, true, nil
}

// NoProgramError is returned where useradd is missing: the lists of users are not edited by other means.
type NoProgramError struct{ Name string }

// Error names the command that makes the account.
func (e *NoProgramError) Error() string {
	return fmt.Sprintf("this system has no useradd; make a user with a group of its own and without a password, for example: addgroup -S %[1]s && adduser -S -D -H -h %[2]s -s /sbin/nologin -G %[1]s %[1]s", e.Name, homeDir)
}

func (system) Create(ctx context.Context, name string) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can make accounts; run 'sudo benchloom collector setup'")
	}
	program, err := exec.LookPath("useradd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/useradd"); err != nil {
			return &NoProgramError{name}
		}
	}
	if err := makeHome(); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, "--system", "--user-group", "--no-create-home", "--home-dir", homeDir,
		"--shell", nologin(), "--comment", "Benchloom benchmarks", name)
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// makeHome makes the directory that the system's list names as the home of all accounts.
func makeHome() error {
	if err := os.MkdirAll(filepath.Dir(homeDir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(homeDir, 0o555); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// nologin returns the program of an account that nobody logs in to.
func nologin() string {
	for _, program := range []string{"/usr/sbin/nologin", "/sbin/nologin"} {
		if _, err := os.Stat(program); err == nil {
			return program
		}
	}
	return "/bin/false"
}
