// Package api is the HTTP side of Benchloom: REST under /api/v1 with a generated
// OpenAPI document, for people, the command line, CI and collectors, and one
// plain page that shows what goes on.
//
// It checks what comes in, writes it to the record and starts workflows; answers
// come from the record alone. Every error is a problem (RFC 9457) that names the
// thing, the reason and what to do. The package must not know Temporal, nor how
// anything is queued, placed or measured.
package api
