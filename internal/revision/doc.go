// Package revision finds revisions in git repositories and exports their trees
// for the artifact provider build.
//
// A local repository is read in place. A remote one has a bare mirror, which is
// read first: revisions in it need no network. The package runs the git
// program, and must not know projects, requests, jobs or how a tree is built.
package revision
