// Package store keeps the record in Postgres: requests, jobs, runs and every result. It
// holds the migrations and all SQL of the project.
//
// Methods that write are idempotent: a caller that does not know whether its call arrived
// repeats it. Each is one transaction, unless its comment says otherwise, with locks that
// make it safe for any number of concurrent processes. Times come from the database (SQL
// now(); for requests clock_timestamp(), so that those of one transaction keep their
// order), never from callers: collectors and processes need no common clock. Only the time
// of a collection is the collector's.
//
// The package must not know Temporal, HTTP, measuring or the order of admission: orders
// and depths are passed as functions.
//
// # Lock order
//
// A transaction takes locks from top to bottom of this list, and several of one line in
// the order that the line names, so that no two transactions wait for each other. Quoted
// names are advisory locks ([lock]), held until the transaction ends; the others are rows.
//
//	"idempotency key …"        audited operations that carry a key
//	"commits P"                recording commits and releases, leaving a branch
//	"admission P"              admission, pausing
//	queue_pause                pausing, resuming
//	"configuration of queues"  changes of queues and account limits
//	"collector N"              registration
//	"removal of builds"        pruning builds
//	"hand-out Q"               hand-out of task queue Q
//	"several requests"         transactions that lock several requests: creation with ancestors,
//	                           notifications of artifacts, superseded builds, rewritten branches
//	"jobs of project P"        writing or purging jobs of suites: expansion, reopening,
//	                           purge, removal of what has expired; several projects by name
//	benchmark_request          for no key update: rows that refer to it are not blocked. A purge
//	                           locks those of its tag, by ID. Its lock protects its comparison
//	artifact                   for no key update; several by project and tag
//	job_queue                  several by ID
//	"accounts at their limit"  hand-out, once it meets a limited account. Afterwards it skips
//	                           jobs that others have locked
//	collector_config           with its periods in collector_presence; several by name; registration, fence, end of a run, all of a
//	                           pool when one is judged or reconsidered, or its canary ends
//	canary                     recording its begin, after its request, and its end
//	job_run                    under its job's lock; alone, appending output and learning
//	                           sizes, removing old output, several by ID. The end of a run locks the collector
//	                           after its run: both belong to the locked job alone
//	"build K"                  end of a build
//	test_result, pstat_series  several by test case; invalidation, purge and removal by ID
//	size_statistics            selecting and learning sizes
//	"test cases of project P"  writing new test cases
//	graph_set                  adding a graph; several by request, under the locks of their jobs. Graphs refer
//	                           to jobs without a foreign key, and so lock none
//	"sets of collectors"       recording a set that is new, or older than an hour
//	job_queue, request_job, job_test_case
//	                           as tables: statistics for the planner, after thousands of jobs
//	"packed results of P"      packing results, or having them packed anew. It comes with no
//	                           lock but that of an audited operation
//	"samples of run R"         storing samples, which reads the run and locks nothing else of it
//	code_profile               storing a profile, under the locks of its job and run
//	profile_attempt            storing and removing samples; removing runs
//	"partitions of samples"    making partitions
//	account_limited            hand-out, release of held jobs, changes of limits; several by ID
//	"jobs waiting of A"        limit of waiting jobs of account A; several by name
//
// Rows that a transaction locks alone are not listed: projects, tokens, invitations,
// wanted versions, source states. Migrations take a lock for their session ([Migrate]), as
// does work that one process does at a time ([Store.Alone]); both are taken before all others.
package store
