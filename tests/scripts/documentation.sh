#!/bin/sh
# What is made from the sources is up to date in README.md. Ends with "N passed, N failed".
. "$(dirname "$0")/verdicts"

make --no-print-directory -s build/obj/list-knobs
verdict 'the generator of the tables builds' 0 $?
scripts/update-docs --check
verdict 'the knobs in README.md are those of shim/config.cc' 0 $?

count_verdicts
