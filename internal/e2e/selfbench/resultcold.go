package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// chill restarts the stack's Postgres, and takes its files out of the page cache.
func (r *resultPages) chill(ctx context.Context) error {
	before, err := r.stack.Processes()
	if err != nil {
		return err
	}
	// Fast shutdown: all is written. The supervisor starts it again.
	process, err := os.FindProcess(before[postgresProcess])
	if err == nil {
		err = process.Signal(os.Interrupt)
	}
	if err != nil {
		return fmt.Errorf("restarting Postgres: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, livestack.StartBound)
	defer cancel()
	for {
		now, err := r.stack.Processes()
		if err == nil && now[postgresProcess] != before[postgresProcess] {
			if err = r.ready(ctx); err == nil {
				break
			}
		}
		if waited := sleep(ctx, lookSoon); waited != nil {
			return fmt.Errorf("Postgres does not come back: %w", errors.Join(waited, err))
		}
	}
	how, err := dropCache(filepath.Join(r.stack.State(), "postgres", "data"))
	if err != nil {
		return err
	}
	r.progress("Postgres has been restarted, and the page cache dropped %s", how)
	return nil
}

// ready returns nil once both Postgres and the API answer.
func (r *resultPages) ready(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.stack.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx), answers(ctx, r.address+"/readyz"))
}

// dropCache takes files out of the page cache: everything that root may drop, else those
// below a directory. It says which.
func dropCache(dir string) (how string, err error) {
	if err := eachFile(dir, (*os.File).Sync); err != nil { // only what is on the disk can be dropped
		return "", fmt.Errorf("writing the files of Postgres: %w", err)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err == nil {
		return "for the whole machine", nil
	}
	if err := eachFile(dir, forget); err != nil {
		return "", fmt.Errorf("dropping the page cache: %w", err)
	}
	return "for its files", nil
}

// eachFile opens the files below a directory one after the other. Those that vanish do not
// matter.
func eachFile(dir string, f func(*os.File) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		return f(file)
	})
}
