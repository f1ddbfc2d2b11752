#!/bin/sh
# Runs rustc for cargo, which names it as the first argument, with a
# self-profile if it compiles a crate: cargo also asks it for its version and
# settings.
set -eu
rustc=$1
shift

case " $* " in
*" --crate-name ___ "*) ;;
*" --crate-name "*)
	mkdir -p "$BENCHLOOM_SELF_PROFILE"
	set -- "$@" "-Zself-profile=$BENCHLOOM_SELF_PROFILE"
	;;
esac
exec "$rustc" "$@"
