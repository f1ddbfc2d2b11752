// Package api serves Benchloom over HTTP: REST under /api/v1 with a generated OpenAPI
// document, for people, the command line, CI and collectors, and the web pages, which are
// a client of it.
//
// A handler decodes, authorizes, calls and encodes. Each group of handlers declares the
// narrow interfaces that it uses beside its code: the record, workflows, the
// [Dispatcher] and the [Inspector]. The record is written first, and answers come from
// it; workflows are called afterwards, and the reconciliation repeats failed calls. Every
// error is a problem (RFC 9457) that names the thing, the reason and the remedy.
//
// The package must not know Temporal, SQL, or the rules for admitting and planning
// requests, for placing, sizing and handing out jobs, and for explaining decisions.
package api
