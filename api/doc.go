// Package api serves Benchloom over HTTP: REST under /api/v1 with a generated OpenAPI
// document, for people, the command line, CI and collectors, and one plain page.
//
// A handler decodes, authorizes, calls and encodes. Each group of handlers names the
// narrow interfaces that it calls beside its code: the record, workflows, the
// [Dispatcher] and the [Inspector]. The record is written first and answers come from
// it; workflows are called afterwards, and the reconciliation repeats what fails. Every
// error is a problem (RFC 9457) that names the thing, the reason and what to do.
//
// The package must not know Temporal, SQL, nor the rules by which requests are admitted
// and planned, jobs are placed, sized and handed out, and decisions explained.
package api
