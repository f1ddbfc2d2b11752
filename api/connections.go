package api

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections closes connections that wait for a further request while there are many.
type connections struct {
	// kept is the number of open connections up to which none is closed.
	kept int

	mu   sync.Mutex
	open int
	// idle holds since when connections wait.
	idle map[net.Conn]time.Time
}

// change takes the new state of a connection, as [http.Server] tells it.
func (c *connections) change(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.idle, conn)
	switch state {
	case http.StateNew:
		c.open++
	case http.StateIdle:
		c.idle[conn] = time.Now()
	case http.StateClosed, http.StateHijacked:
		c.open--
		return
	case http.StateActive:
		return
	}
	if c.open > c.kept {
		c.closeOldest()
	}
}

// closeOldest closes the connection that has waited longest, if one waits.
func (c *connections) closeOldest() {
	var oldest net.Conn
	for conn, since := range c.idle {
		if oldest == nil || since.Before(c.idle[oldest]) {
			oldest = conn
		}
	}
	if oldest == nil {
		return
	}
	delete(c.idle, oldest)
	if encrypted, ok := oldest.(*tls.Conn); ok {
		oldest = encrypted.NetConn() // without a farewell, which might have to wait
	}
	_ = oldest.Close() // the server notices
}
