#!/bin/sh
# Tests of scripts/happy-timeline with traces that are none. Ends with "N passed, N failed".
. "$(dirname "$0")/verdicts"

# timeline STATUS OUTPUT NAME ARGUMENTS...: both streams in one.
timeline() {
  want="$1: $2"
  name=$3
  shift 3
  got=$(scripts/happy-timeline "$@" 2>&1)
  verdict "$name" "$want" "$?: $got"
}

# odd NAME LINE...: lines that are no events, between two that are.
odd() {
  name=$1
  shift
  { echo '{"time_ms":1,"pid":1,"event":"begin"}'; printf '%s\n' "$@"; echo '{"time_ms":3,"pid":1,"event":"end"}'; } >"$work/trace"
  timeline 0 "      0.0 ms  begin
      2.0 ms  end
happy-timeline: $# lines are no events" "$name" "$work/trace"
}

odd 'not JSON' '}' '<html>' "$(printf '\377\376')"
odd 'not an object' '[]' '[1]' '1' 'null' '"text"'
odd 'no event' '{}' '{"time_ms":1}' '{"pid":1,"event":"x"}'
odd 'of other kinds' '{"time_ms":"1","pid":1,"event":"x"}' '{"time_ms":1,"pid":[1],"event":"x"}' \
  '{"time_ms":1,"pid":1,"event":["x"]}' '{"time_ms":1,"pid":1,"event":"x","lookup":{}}'
odd 'no time' '{"time_ms":NaN,"pid":1,"event":"x"}' '{"time_ms":1e999,"pid":1,"event":"x"}'
odd 'nested without end' "$(printf '%30000s' '' | tr ' ' '[')"
printf '{"time_ms":1,"pid":1,"event":"lookup","name":"\\u001b[31mred\\u0007\\ud800"}\n' >"$work/trace"
timeline 0 '      0.0 ms  lookup      \u001b[31mred\u0007\ud800' 'what a terminal would obey' "$work/trace"
timeline 1 "happy-timeline: $work: Is a directory" 'a folder' "$work"
got=$(scripts/happy-timeline "$work/trace" 2>&1 >/dev/full)
verdict 'a full disk' '1: happy-timeline: standard output: No space left on device' "$?: $got"

count_verdicts
