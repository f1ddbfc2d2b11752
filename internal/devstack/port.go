package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Free ports are chosen below the range of outgoing connections (from 32768 on Linux by
// default, from 49152 elsewhere): a port of that range might be taken between the choice
// and the start of its process.
const (
	firstFreePort = 20_000
	lastFreePort  = 32_000
	freePortTries = 100
)

// claimed is the time for which a chosen port is not chosen again: on a busy machine its
// process takes some seconds to listen on it.
const claimed = 5 * time.Minute

// FreePort returns a TCP port on which no process listens, and which no other call, in any
// process of the same user, has returned in the last minutes.
func FreePort(ip string) (int, error) {
	claims := filepath.Join(sharedDir(), fmt.Sprintf("benchloom-ports-%d", os.Getuid()))
	if err := os.MkdirAll(claims, 0o700); err != nil {
		return 0, fmt.Errorf("claiming a free port: %w", err)
	}
	var err error
	for range freePortTries {
		port := firstFreePort + rand.N(lastFreePort-firstFreePort)
		// Claim first: listening, even as a trial, on a port that another call has just returned
		// would be in the way of the process that is about to listen there.
		if err = claim(filepath.Join(claims, strconv.Itoa(port)), time.Now()); err != nil {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port))); err != nil {
			continue
		}
		if err = listener.Close(); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("looking for a free port on %s, of %d from %d to %d none could be had: %w", ip, freePortTries, firstFreePort, lastFreePort, err)
}

// sharedDir returns a directory for temporary files that is the same for all processes, even those with their own
// TMPDIR.
func sharedDir() string {
	const unix = "/tmp"
	if info, err := os.Stat(unix); err == nil && info.IsDir() {
		return unix
	}
	return os.TempDir()
}

// claim creates the file of a port. It fails while another claim of the port holds.
func claim(file string, now time.Time) error {
	if info, err := os.Stat(file); err == nil && now.Sub(info.ModTime()) > claimed {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// PortTakenError is returned when another process has a port.
type PortTakenError struct {
	What    string // what the port is for
	Address string
}

// Error says what to do.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("%s cannot listen on %s, another process does: stop that process, or choose another port", e.What, e.Address)
}

// A starting process holds the sockets of its parent until its own program runs; on a busy
// machine that takes a tenth of a second. So a port that was just tried may look taken.
const (
	portPatience = 2 * time.Second
	portPause    = 50 * time.Millisecond
)

// CheckPort returns a [PortTakenError] if another process listens on an address of this
// machine: it would answer for the process that is about to be started there.
func CheckPort(ctx context.Context, what, address string) error {
	patience, stop := context.WithTimeout(ctx, portPatience)
	defer stop()
	for {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			if err := listener.Close(); err != nil {
				return fmt.Errorf("looking whether %s is free: %w", address, err)
			}
			return nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return err
		}
		select {
		case <-patience.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return &PortTakenError{What: what, Address: address}
		case <-time.After(portPause):
		}
	}
}
