#!/bin/sh
# Prepares the module in the current directory: fills a build cache with the
# standard library and the dependencies of the named packages, so that only the
# module itself is left to compile.
#
#   prepare.sh <go command> <folder of shared caches> <backend> <what> <package>...
#
# what is a profile (build, vet, race): the cache becomes ../gocache.
# Or it is "test": the package's test binary becomes ../bench.test.
#
# A shared cache belongs to one Go version, backend and way of building. All
# benchmarks of an artifact use it, so each dependency is built once. A module's
# own packages never come into it: what builds them has a linked copy.
set -eu
go=$1 caches=$2 backend=$3 what=$4
shift 4

way=$what with_tests=
case $what in
# Tests would bring dependencies of their own, and go vet would look at them.
build | vet | race) find . -name '*_test.go' -exec rm -f {} + ;;
test) way=build with_tests=-test ;;
*) echo "prepare.sh: $what is neither a profile of this suite nor test" >&2 && exit 2 ;;
esac
version=$("$go" env GOVERSION | tr -c 'A-Za-z0-9.\n' -)
shared=$caches/$version/$way-$backend
mkdir -p "$shared"

# A program that imports what the module's packages import.
"$go" list -deps $with_tests -f '{{if .Module}}{{if .Module.Main}}own {{.ImportPath}}{{range .Imports}}
import {{.}}{{end}}{{end}}{{end}}' "$@" >../imports
mkdir benchloom_deps
awk '
	$1 == "own" { own[$2] = 1 }
	$1 == "import" && $2 != "C" && $2 !~ /^testing\/internal\// { imported[$2] = 1 }
	END {
		print "package main"
		for (path in imported) if (!(path in own)) print "import _ \"" path "\""
		print "func main() {}"
	}' ../imports >benchloom_deps/main.go
# With a test, it needs what every test binary needs.
[ -z "$with_tests" ] || echo "package main" >benchloom_deps/main_test.go
case $way in
build) GOCACHE=$shared "$go" list -export -deps $with_tests -f '' ./benchloom_deps ;;
race) GOCACHE=$shared "$go" list -race -export -deps -f '' ./benchloom_deps ;;
vet) GOCACHE=$shared "$go" vet ./benchloom_deps ;;
esac
rm -rf benchloom_deps ../imports

rm -rf ../gocache
cp -al "$shared" ../gocache 2>/dev/null || {
	# Not on one file system.
	rm -rf ../gocache
	cp -a "$shared" ../gocache
}
if [ "$what" = test ]; then
	"$go" test -c -o ../bench.test "$@"
	rm -rf ../gocache
fi
