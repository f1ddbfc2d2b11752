// Package revision finds revisions in git repositories and exports their trees:
// what the artifact provider build begins with.
//
// A local repository is read where it is. Of a remote one a bare mirror is kept,
// which is asked first: what it has needs no network. The package runs the git
// program, and must not know projects, requests, jobs or how a tree is built.
package revision
