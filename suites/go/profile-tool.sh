#!/bin/sh
# Runs a tool of the Go toolchain for 'go build -toolexec', the compiler and the
# linker with a CPU profile of their own.
#
#   profile-tool.sh <folder of profiles> <tool> <argument>...
set -eu
dir=$1 tool=$2
shift 2

case ${tool##*/} in
compile | link)
	case " $* " in
	*" -V=full "*) ;; # asked for its version, which must be as without a profiler
	*)
		mkdir -p "$dir"
		set -- "-cpuprofile=$dir/${tool##*/}.$$.pprof" "$@"
		;;
	esac
	;;
esac
exec "$tool" "$@"
