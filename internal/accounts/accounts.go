// Package accounts provides the accounts that benchmarks run as when their collector is root: each belongs to one slot of
// the machine at a time, has no rights and no files of its own, and runs nothing but benchmarks.
//
// The package must not know what a collector is or what runs as an account: nothing of sandboxes, suites or the API.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gofrs/flock"
)

// Most is the largest number of accounts of a machine.
const Most = 256

// prefix begins the name of every account; a number from 1 follows.
const prefix = "benchloom-"

var (
	// ErrNone is returned when the machine has too few accounts.
	ErrNone = errors.New("this machine has no account for benchmarks")
	// ErrTaken is returned when other collectors use all accounts, or the one that was asked for.
	ErrTaken = errors.New("in use by another collector")
)

// Account is an account without rights.
type Account struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
}

// Directory looks up and makes accounts. It is called under a lock that other processes share, one call at a time.
type Directory interface {
	// Lookup returns an account; found is false if there is none of that name.
	Lookup(name string) (account Account, found bool, err error)
	Create(ctx context.Context, name string) error
}

// Pool holds the accounts of a machine.
type Pool struct {
	// Locks is a directory that only root can write, the same for all processes of the machine.
	Locks     string
	Directory Directory
}

// Lease is an account that no other collector uses until it is released, or the process ends.
type Lease struct {
	Account
	locks []*flock.Flock
}

// Release gives the account back.
func (l *Lease) Release() error {
	var errs []error
	for _, lock := range l.locks {
		errs = append(errs, lock.Unlock())
	}
	return errors.Join(errs...)
}

// Setup makes accounts until the machine has n of them. It returns those that it made.
func (p Pool) Setup(ctx context.Context, n int) (made []Account, err error) {
	if n < 1 || n > Most {
		return nil, fmt.Errorf("%d accounts are wanted; 1 to %d are possible", n, Most)
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for i := range n {
		account, isNew, err := p.ensure(ctx, i+1)
		if err != nil {
			return made, err
		}
		if isNew {
			made = append(made, account)
		}
	}
	return made, nil
}

// All returns the accounts of the machine.
func (p Pool) All() ([]Account, error) {
	var all []Account
	for i := range Most {
		account, found, err := p.lookup(i + 1)
		if err != nil || !found {
			return all, err
		}
		all = append(all, account)
	}
	return all, nil
}

// Reserve leases n accounts for processes that this one starts, which pass their names to [Pool.Use]: those preferred first,
// then any that are free, and new ones. It also returns those that it made.
func (p Pool) Reserve(ctx context.Context, n int, prefer []string) (leases []*Lease, made []Account, err error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	defer func() {
		if err != nil {
			for _, l := range leases {
				err = errors.Join(err, l.Release())
			}
			leases = nil
		}
	}()
	for slot := range n {
		var preferred string
		if slot < len(prefer) {
			preferred = prefer[slot]
		}
		lease, err := p.free(preferred)
		for i := 1; errors.Is(err, ErrNone) || errors.Is(err, ErrTaken); i++ {
			if i > Most {
				return leases, made, fmt.Errorf("%d accounts for benchmarks: all are %w", Most, ErrTaken)
			}
			account, isNew, ensureErr := p.ensure(ctx, i)
			if ensureErr != nil {
				return leases, made, ensureErr
			}
			if isNew {
				made = append(made, account)
				lease, err = p.reserve(account)
			}
		}
		if err != nil {
			return leases, made, err
		}
		leases = append(leases, lease)
	}
	return leases, made, nil
}

// Take leases an account of the machine for this process: the preferred one if it is free. The errors are [ErrNone] and
// [ErrTaken].
func (p Pool) Take(ctx context.Context, preferred string) (*Lease, error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	lease, err := p.free(preferred)
	if err != nil {
		return nil, err
	}
	used, err := p.Use(lease.Name)
	if err != nil {
		return nil, errors.Join(err, lease.Release())
	}
	lease.locks = append(lease.locks, used.locks...)
	return lease, nil
}

// Use leases an account that another process has reserved for this one. The errors are [ErrNone] and [ErrTaken].
func (p Pool) Use(name string) (*Lease, error) {
	account, found, err := p.Directory.Lookup(name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("account %s: %w", name, ErrNone)
	}
	return p.hold(account, "use")
}

// free leases a free account, the preferred one first.
func (p Pool) free(preferred string) (*Lease, error) {
	all, err := p.All()
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(all, func(a Account) bool { return a.Name == preferred }); at > 0 {
		all = slices.Concat(all[at:at+1], all[:at], all[at+1:])
	}
	for _, account := range all {
		lease, err := p.reserve(account)
		if err == nil || !errors.Is(err, ErrTaken) {
			return lease, err
		}
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	return nil, fmt.Errorf("%d accounts for benchmarks: all are %w", len(all), ErrTaken)
}

func (p Pool) reserve(a Account) (*Lease, error) { return p.hold(a, "lock") }

// hold locks a file of the account for this process. Two kinds of locks let a process reserve accounts for its children.
func (p Pool) hold(a Account, kind string) (*Lease, error) {
	lock := flock.New(filepath.Join(p.Locks, a.Name+"."+kind))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("leasing account %s: %w", a.Name, err)
	}
	if !held {
		return nil, fmt.Errorf("account %s: %w", a.Name, ErrTaken)
	}
	return &Lease{Account: a, locks: []*flock.Flock{lock}}, nil
}

func (p Pool) lookup(number int) (Account, bool, error) {
	return p.Directory.Lookup(prefix + strconv.Itoa(number))
}

// ensure returns the account of a number, and makes it if there is none.
func (p Pool) ensure(ctx context.Context, number int) (account Account, isNew bool, err error) {
	account, found, err := p.lookup(number)
	if err != nil || found {
		return account, false, err
	}
	name := prefix + strconv.Itoa(number)
	if err := p.Directory.Create(ctx, name); err != nil {
		return account, false, fmt.Errorf("making account %s: %w", name, err)
	}
	account, found, err = p.lookup(number)
	if err == nil && !found {
		err = fmt.Errorf("account %s was made, but this system does not know it", name)
	}
	return account, true, err
}

// lock keeps other processes from choosing and making accounts.
func (p Pool) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(p.Locks, 0o700); err != nil {
		return nil, fmt.Errorf("leasing an account for benchmarks: %w", err)
	}
	lock := flock.New(filepath.Join(p.Locks, "lock"))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, fmt.Errorf("leasing an account for benchmarks: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil // it ends with the process at the latest
}
