#!/bin/sh
# What is made from the sources is up to date in README.md. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1

passed=0
failed=0

verdict() {
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
    printf 'ok   %s\n' "$1"
  else
    failed=$((failed + 1))
    printf 'FAIL %s\n' "$1"
  fi
}

make --no-print-directory -s build/obj/list-knobs
verdict 'the generator of the tables builds' $?
scripts/update-docs --check
verdict 'the knobs in README.md are those of shim/config.cc' $?

printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
