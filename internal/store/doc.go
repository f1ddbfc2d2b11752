// Package store is the record in Postgres: what was asked, what ran, and every
// result. It holds the migrations and all SQL of the project.
//
// Every method that writes is idempotent: a caller that does not know whether
// its call arrived repeats it. Each is one transaction, unless its comment says
// otherwise, under the locks that make it safe for any number of processes at once.
// Times are those of the database (SQL now(); for requests clock_timestamp(), so that
// those of one transaction keep their order), never a caller's: collectors and
// processes need no common clock. Only the time of a collection is the collector's.
//
// The package must not know Temporal, HTTP, how anything is measured, or in
// which order requests are admitted: orders and depths come in as functions.
//
// # Lock order
//
// A transaction takes locks from top to bottom of this list, and several of one line
// in the order that the line names, so that no two wait for each other. Quoted ones
// are advisory ([lock]), held until the transaction ends; the others are rows.
//
//	"idempotency key …"        audited operations that carry a key
//	"commits P"                recording commits and releases, leaving a branch
//	"admission P"              admission, pausing
//	queue_pause                pausing, resuming
//	"configuration of queues"  changes of queues and account limits
//	"collector N"              registration
//	"removal of builds"        pruning builds
//	"hand-out Q"               hand-out of task queue Q
//	"several requests"         whoever locks more than one request: creation with ancestors,
//	                           notifications of artifacts, superseded builds, rewritten branches
//	"jobs of project P"        whoever writes or purges jobs of suites: expansion, reopening,
//	                           purge; several projects by name
//	benchmark_request          for no key update: rows that refer to it are not blocked. A purge
//	                           locks those of its tag, by ID
//	artifact                   several by project and tag
//	job_queue                  several by ID
//	"accounts at their limit"  hand-out, once it meets a limited account. Jobs that it locks
//	                           afterwards it takes only when nobody else has them
//	collector_config           several by name; registration, fence, end of a run
//	job_run                    under its job's lock; alone, appending output and learning
//	                           sizes, several by ID. The end of a run locks the collector
//	                           after its run: both belong to the locked job alone
//	"build K"                  end of a build
//	test_result, pstat_series  several by test case; invalidation and purge by ID
//	size_statistics            selecting and learning sizes
//	"test cases of project P"  whoever writes a test case that is new
//	"sets of collectors"       whoever records a set that is new, or older than an hour
//	job_queue, request_job     as tables: statistics for the planner, after thousands of jobs
//	"jobs waiting of A"        limit of waiting jobs of account A; several by name
//
// Outside of it stand rows that a transaction locks alone or after nothing else:
// projects, tokens, invitations, wanted versions, source states. Migrations have a
// lock of their session ([Migrate]).
package store
