// Package servetls keeps the certificate of a server at what its files hold, so that a
// renewed one is served without a restart, and tells when it was not renewed in time.
//
// It must not know what is served.
package servetls

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate is a certificate with its key, from two files in the format PEM. It is safe
// for concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	served *tls.Certificate
	// outlived is set once the log tells that the served one has expired.
	outlived bool
	// tried is the state of the files that was read last, whether it could be used or not.
	tried [2]stamp
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// Load reads a certificate, with the intermediate ones after it, and its key. The log
// tells when another one is served, or cannot be, and when the served one has expired.
func Load(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	tried, err := c.stamps()
	if err == nil {
		err = c.read()
	}
	if err != nil {
		return nil, fmt.Errorf("loading the certificate: %w; name files in the format PEM, the certificate and its own key", err)
	}
	c.tried = tried
	c.checkExpiry(time.Now())
	return c, nil
}

func (c *Certificate) stamps() (stamps [2]stamp, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{modified: info.ModTime(), size: info.Size()}
	}
	return stamps, nil
}

func (c *Certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.served, c.outlived = &pair, false
	return nil
}

// checkExpiry logs once that the served certificate has expired. It is served all the same:
// nothing better is there, and clients refuse it by name.
func (c *Certificate) checkExpiry(now time.Time) {
	if c.outlived || !now.After(c.served.Leaf.NotAfter) {
		return
	}
	c.outlived = true
	c.log.Warn("the certificate has expired: clients refuse it until it is renewed", "file", c.certFile, "expired", c.served.Leaf.NotAfter)
}

// current returns the certificate, read again if a file has changed. While only one of the
// two has been replaced, or a file is gone, the former certificate is served.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.checkExpiry(time.Now()) }()
	stamps, err := c.stamps()
	if err == nil && stamps == c.tried {
		return c.served
	}
	if err == nil {
		err = c.read()
	}
	switch {
	case err == nil:
		c.log.Info("serving a renewed certificate", "file", c.certFile)
	case stamps != c.tried:
		c.log.Warn("the changed certificate cannot be used; the former one is served", "error", err)
	}
	c.tried = stamps
	return c.served
}

// Config returns a server's configuration: TLS 1.2 or later, and HTTP/1.1 only, so that
// bounds on connections are bounds on requests.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}
