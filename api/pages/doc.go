// Package pages shows what the API answers as web pages: HTML from the server that needs no
// script, with one style sheet and a few modules that only save reloads.
//
// A page is a client of the API like the command line. It reads and acts as its visitor,
// with the token of that person, so that it can show and do nothing that the API would
// refuse. The whole state of a page is its address.
//
// The package must not know the record, Temporal, or how the API is served. What a page
// needs and the API lacks is added to the API first.
package pages
