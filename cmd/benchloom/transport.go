package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// transportFlags say how a client protects its connection to the API.
type transportFlags struct {
	// ca is a file with certificates of authorities; empty means those of the system.
	ca       string
	insecure bool
}

func (f *transportFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.ca, "tls-ca", os.Getenv("BENCHLOOM_TLS_CA"), "file with certificates (PEM) that the API's may be signed by, besides the system's (default: $BENCHLOOM_TLS_CA)")
	flags.BoolVar(&f.insecure, "insecure", os.Getenv("BENCHLOOM_INSECURE") == "1", "call an API on another machine over plain HTTP, with everything readable on the way, tokens included (default: $BENCHLOOM_INSECURE is 1)")
}

// take fills in the settings of an enrolment.
func (f *transportFlags) take(e *enrolment) {
	if f.ca == "" {
		f.ca = e.TLSCA
	}
	f.insecure = f.insecure || e.Insecure
}

// client returns a client of the API at address. It refuses plain HTTP to another machine.
func (f *transportFlags) client(address, token string) (*apiclient.Client, error) {
	// Scheme and host are case-insensitive.
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(address)), "http:") && !onLoopback(address) && !f.insecure {
		return nil, usage(fmt.Errorf("the API at %s is on another machine, and plain HTTP would show tokens and results to everybody on the way: use https:// (the API takes --tls-cert and --tls-key, or a proxy in front of it does), or --insecure (BENCHLOOM_INSECURE=1) if you trust the network", address))
	}
	carrier, err := f.carrier()
	if err != nil {
		return nil, err
	}
	client, err := apiclient.New(address, token, carrier)
	if err != nil {
		return nil, usage(err)
	}
	return client, nil
}

// carrier returns the HTTP client.
func (f *transportFlags) carrier() (*http.Client, error) {
	if f.ca == "" {
		return &http.Client{}, nil
	}
	text, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of --tls-ca: %w", err)
	}
	known, err := x509.SystemCertPool()
	if err != nil {
		known = x509.NewCertPool() // the file's are enough
	}
	if !known.AppendCertsFromPEM(text) {
		return nil, usage(fmt.Errorf("--tls-ca %s: it holds no certificate in the format PEM", f.ca))
	}
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the program's HTTP transport was replaced")
	}
	transport := standard.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}
