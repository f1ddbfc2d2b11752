package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

type accountKind int

const (
	accountOwn      accountKind = iota // the account of this process
	accountSwitched                    // another account; this process is root
	accountMapped                      // root, under another user ID in a user namespace
)

// account is the user a child runs as.
type account struct {
	kind     accountKind
	name     string
	uid, gid int
}

// ownerOnDisk returns the owner of files that a process of this account creates.
func (a account) ownerOnDisk() (uid, gid int) {
	if a.kind == accountSwitched {
		return a.uid, a.gid
	}
	return os.Geteuid(), os.Getegid()
}

// unprivilegedAccount returns the account for a program that refuses to run as root,
// with its data in dir. Instead of root it is user postgres or nobody. If that user
// cannot enter a directory above dir that passable lists, the directory is opened to its
// group (mode 0710). If that is not enough, the child runs in a user namespace in which
// root has the user's ID.
func unprivilegedAccount(dir string, passable ...string) (account, error) {
	if os.Geteuid() != 0 {
		return account{kind: accountOwn, uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	other, err := firstUser("postgres", "nobody")
	if err != nil {
		return account{}, err
	}
	blocked, err := blockedDirs(dir, other)
	if err != nil {
		return account{}, err
	}
	for _, open := range passable {
		if len(blocked) == 1 && blocked[0] == open {
			if err := openToGroup(open, other.gid); err != nil {
				return account{}, err
			}
			if blocked, err = blockedDirs(dir, other); err != nil {
				return account{}, err
			}
		}
	}
	switch {
	case len(blocked) == 0:
		other.kind = accountSwitched
	case canMapAccounts:
		other.kind = accountMapped
	default:
		return account{}, fmt.Errorf("user %s, which this runs as instead of root, cannot enter %s: use a state directory that it can enter, or run as an ordinary user", other.name, blocked[0])
	}
	return other, nil
}

func firstUser(names ...string) (account, error) {
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if errors.Join(uidErr, gidErr) == nil && uid > 0 {
			return account{name: name, uid: uid, gid: gid}, nil
		}
	}
	return account{}, fmt.Errorf("none of the users %v exists, and this program does not run as root: create one, or run as an ordinary user", names)
}

// blockedDirs returns the directories above dir that the account cannot enter,
// outermost first.
func blockedDirs(dir string, a account) ([]string, error) {
	var blocked []string
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return nil, fmt.Errorf("looking at directory %s: %w", above, err)
		}
		uid, gid := ownerOf(info)
		mode := info.Mode().Perm()
		switch {
		case uid == a.uid:
			mode >>= 6
		case gid == a.gid:
			mode >>= 3
		}
		if mode&1 == 0 {
			blocked = append([]string{above}, blocked...)
		}
		if above == filepath.Dir(above) {
			return blocked, nil
		}
	}
}

func openToGroup(dir string, gid int) error {
	if err := os.Chown(dir, -1, gid); err != nil {
		return fmt.Errorf("opening directory %s to group %d: %w", dir, gid, err)
	}
	if err := os.Chmod(dir, 0o710); err != nil {
		return fmt.Errorf("opening directory %s to group %d: %w", dir, gid, err)
	}
	return nil
}

// giveTo makes the account own the directory and everything in it.
func giveTo(dir string, a account) error {
	uid, gid := a.ownerOnDisk()
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner, _ := ownerOf(info); owner == uid {
		return nil
	}
	// The directory itself comes last, as the mark that the rest is done.
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
	if err != nil {
		return fmt.Errorf("giving directory %s to user %d: %w", dir, uid, err)
	}
	return os.Lchown(dir, uid, gid)
}
