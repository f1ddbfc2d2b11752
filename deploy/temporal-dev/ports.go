package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// loopback is the address of the server's internal services: only the frontend is ever
// reachable from elsewhere.
const loopback = "127.0.0.1"

// Internal services prefer ports below those that Linux gives to outgoing connections and to
// programs that ask for any port, and below those that 'benchloom up' gives to its other
// processes: one of them would often be taken before the service, or that process, listens.
const (
	firstQuiet = 15_000
	quiet      = 20_000 - firstQuiet
	tries      = 20
)

// ports holds the TCP ports of one server; internal is the frontend's port for the
// server's own workers.
type ports struct {
	frontend, internal, history, matching, worker int
}

// choosePorts checks that the wanted port of the frontend can be bound and picks free ones
// for the rest. All are held together while choosing, so no two are the same.
func choosePorts(ctx context.Context, ip net.IP, frontend int) (ports, error) {
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	hold := func(name, flagName, host string, port int) (int, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return 0, fmt.Errorf("%s port %d on %s is taken by another process: stop that process or choose another port with --%s", name, port, host, flagName)
			}
			return 0, fmt.Errorf("%s port %d on %s cannot be used: %w", name, port, host, err)
		}
		held = append(held, listener)
		return listener.Addr().(*net.TCPAddr).Port, nil
	}

	var chosen ports
	var err error
	if chosen.frontend, err = hold("frontend", "port", ip.String(), frontend); err != nil {
		return ports{}, err
	}
	for _, inner := range []struct {
		name string
		port *int
	}{{"internal frontend", &chosen.internal}, {"history", &chosen.history}, {"matching", &chosen.matching}, {"worker", &chosen.worker}} {
		for range tries {
			if *inner.port, err = hold(inner.name, "ip", loopback, firstQuiet+rand.IntN(quiet)); err == nil {
				break
			}
		}
		if err == nil {
			continue
		}
		if *inner.port, err = hold(inner.name, "ip", loopback, 0); err != nil {
			return ports{}, err
		}
	}
	return chosen, nil
}

// reachable returns the host at which this machine reaches a server that listens on ip:
// loopback if it listens on all addresses.
func reachable(ip net.IP) string {
	switch {
	case !ip.IsUnspecified():
		return ip.String()
	case ip.To4() != nil:
		return loopback
	default:
		return net.IPv6loopback.String()
	}
}
