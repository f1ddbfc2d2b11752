// Package store is the record in Postgres: what was asked, what ran, and every
// result. It holds the migrations and all SQL of the project.
//
// Every method that writes is idempotent: a caller that does not know whether
// its call arrived repeats it. Each is one transaction, under the locks that
// make it safe for any number of processes at once. Times are those of the
// database (SQL now(); for requests clock_timestamp(), so that those of one
// transaction keep their order), never a caller's: collectors and processes need
// no common clock. Only when a collection was made is what the collector says.
//
// The package must not know Temporal, HTTP, how anything is measured, or in
// which order requests are admitted: orders and depths come in as functions.
//
// Locks are always taken in this order, so that no two calls wait for each
// other: advisory lock, request, jobs by ID, collectors by name, runs.
package store
