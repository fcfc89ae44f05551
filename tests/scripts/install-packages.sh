#!/bin/sh
# Tests of scripts/install-packages up to where it would change the system; dpkg-query, id and the like
# are stubs. Ends with "N passed, N failed".
. "$(dirname "$0")/verdicts"

# expect NAME STATUS TEXT ARGUMENTS...: the status, and at most one line, which holds TEXT (nothing
# at all if TEXT is empty). PATH is the stubs and the tools that the script needs.
expect() {
  name=$1
  want="status $2"
  text=$3
  shift 3
  PATH=$work/bin scripts/install-packages "$@" >"$work/out" 2>&1
  got="status $?"
  lines=$(wc -l <"$work/out")
  if [ -n "$text" ]; then
    [ "$lines" -eq 1 ] && grep -qF -- "$text" "$work/out" || got="$got: $(cat "$work/out")"
  else
    [ "$lines" -eq 0 ] || got="$got: $(cat "$work/out")"
  fi
  verdict "$name" "$want" "$got"
}

stub() {
  printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

mkdir "$work/bin"
for tool in dirname sed sort tr cat; do ln -s "$(command -v $tool)" "$work/bin/"; done
expect 'no apt: names what is needed and goes on' 0 'no apt here' build

stub apt-get 'echo "apt-get called" >&2; exit 99'
stub sudo 'echo "sudo called: $*"; exit 0'
stub id 'echo 1000'
# Has everything that it is asked about, but for what is in $LACKING and for config files alone.
stub dpkg-query 'shift 3; for p in "$@"; do case " $LACKING " in *" $p "*) printf "config-files:%s " $p ;;
  *) printf "installed:%s " $p ;; esac; done'

LACKING=
export LACKING
expect 'nothing missing: silent' 0 '' build check demo
LACKING='telnet'
expect 'an alternative is enough' 0 '' demo
LACKING='g++'
expect 'not root: by sudo, with the same groups' 0 'scripts/install-packages build demo' build demo
rm "$work/bin/sudo"
expect 'neither root nor sudo: says what to install' 1 'only root can install what is missing: apt-get install g++' build
expect 'unknown group' 2 "unknown group 'nonsense': build, check, demo" nonsense

count_verdicts
