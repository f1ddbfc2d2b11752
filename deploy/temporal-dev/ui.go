package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	uiapi "github.com/temporalio/ui-server/v2/server/api"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uiroute "github.com/temporalio/ui-server/v2/server/route"
	uiassets "github.com/temporalio/ui-server/v2/ui"
)

// roleHeader is the header in which the server before the Web UI says what its visitor may
// do: uiRoleAdmin, or anything else to look.
const (
	roleHeader  = "Benchloom-Role"
	uiRoleAdmin = "admin"
)

// webUI serves Temporal's Web UI on a Unix socket, which only this user may open. The server before
// it does the signing in, keeps foreign pages out, and says who visits.
type webUI struct {
	server        *http.Server
	listener      net.Listener
	admin, reader http.Handler
	// adminToken and readerToken come from the guard; empty if the frontend asks for none.
	adminToken, readerToken string
}

// newWebUI listens on the socket. It does not serve yet.
func newWebUI(ctx context.Context, socket string, config uiconfig.Config, g *guard) (*webUI, error) {
	u := new(webUI)
	if g != nil {
		u.adminToken, u.readerToken = g.uiAdmin, g.uiReader
	}
	var err error
	if u.admin, err = uiHandler(config); err != nil {
		return nil, err
	}
	config.DisableWriteActions = true
	if u.reader, err = uiHandler(config); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket that an earlier process left: %w", err)
	}
	if u.listener, err = new(net.ListenConfig).Listen(ctx, "unix", socket); err != nil {
		return nil, fmt.Errorf("--ui-socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, fmt.Errorf("protecting the socket of the Web UI: %w", errors.Join(err, u.listener.Close()))
	}
	u.server = &http.Server{Handler: u, ReadHeaderTimeout: 10 * time.Second}
	return u, nil
}

// uiConfig returns the settings of the Web UI for a frontend.
func uiConfig(frontend, namespace string, t *transport) (uiconfig.Config, error) {
	config := uiconfig.Config{
		TemporalGRPCAddress: frontend, DefaultNamespace: namespace, EnableUI: true,
		DisableNewsFetch: true, // nothing here calls out to the internet
	}
	if t.served == nil {
		return config, nil
	}
	certificate, key, err := t.ownPEM()
	if err != nil {
		return config, fmt.Errorf("giving the Web UI its certificate: %w", err)
	}
	text := base64.StdEncoding.EncodeToString
	config.TLS = uiconfig.TLS{
		CaData: text(certificate), CertData: text(certificate), KeyData: text(key),
		ServerName: ownName, EnableHostVerification: true,
	}
	return config, nil
}

// uiHandler puts the Web UI together as its own server does, but without that server's
// listener, cookies and permissions for other origins.
func uiHandler(config uiconfig.Config) (http.Handler, error) {
	provider, err := uiconfig.NewConfigProviderWithRefresh(&config)
	if err != nil {
		return nil, fmt.Errorf("configuring the Web UI: %w", err)
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip())
	uiroute.SetHealthRoute(e)
	if err := uiroute.SetAPIRoutes(e, provider, []uiapi.Middleware{}); err != nil {
		return nil, err
	}
	assets, err := uiassets.Assets()
	if err != nil {
		return nil, fmt.Errorf("reading the pages of the Web UI: %w", err)
	}
	local, err := fs.Sub(assets, "local")
	if err != nil {
		return nil, fmt.Errorf("reading the pages of the Web UI: %w", err)
	}
	if err := uiroute.SetUIRoutes(e, "", local); err != nil {
		return nil, err
	}
	uiroute.SetRenderRoute(e, "")
	return e, nil
}

// ServeHTTP answers within the visitor's rights. The token goes on to the frontend.
func (u *webUI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, token := u.reader, u.readerToken
	if r.Header.Get(roleHeader) == uiRoleAdmin {
		handler, token = u.admin, u.adminToken
	}
	r.Header.Del("Authorization")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	handler.ServeHTTP(w, r)
}

// serve serves until stop.
func (u *webUI) serve() error {
	if err := u.server.Serve(u.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the Web UI: %w", err)
	}
	return nil
}

func (u *webUI) stop() { _ = u.server.Close() }
