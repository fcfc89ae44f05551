#!/bin/sh
# Tests of scripts/happy-lab; needs what tests/netns needs. Ends with "N passed, N failed".
. "$(dirname "$0")/verdicts"
make --no-print-directory -s all lab >&2 || exit 1
unset LD_PRELOAD

# complaint STATUS TEXT NAME ARGUMENTS...: nothing on standard output, one line on standard error.
complaint() {
  want="status $1, 1 line, 0 bytes out"
  text=$2
  name=$3
  shift 3
  scripts/happy-lab "$@" >"$work/out" 2>"$work/err"
  got="status $?, $(wc -l <"$work/err") line, $(wc -c <"$work/out") bytes out"
  case $(cat "$work/err") in
    'happy-lab: '*"$text"*) ;;
    *) got="$got: $(cat "$work/err")" ;;
  esac
  verdict "$name" "$want" "$got"
}

# told EXPRESSION: of the last --json file; r is the report of the (last) run, e(KIND) its events.
told() {
  /usr/bin/python3 -c "
import json, sys
whole = json.load(open('$work/json'))
runs = whole['runs']
r = list(runs.values())[-1]
def e(kind, r=r): return [event for event in r['events'] if event['event'] == kind]
print($1)"
}

# lab ARGUMENTS...: runs it with --json; what it printed goes to the file "out".
lab() {
  scripts/happy-lab --json "$work/json" "$@" >"$work/out" 2>&1
}

walk=build/tests/victims/walk

# ---- wrong use

complaint 2 'which fault?' 'no fault'
complaint 2 "no fault is called 'v6-dorp'; near to it: v6-drop" 'unknown fault' v6-dorp true
complaint 2 "no fault is called 'xyz' (" 'nothing near' xyz true
complaint 2 "no fault is called ''" 'an empty fault' v6-drop+ true
complaint 2 'v6-slow takes =MS' 'no value' v6-slow true
complaint 2 'v6-drop takes no value' 'a value too many' v6-drop=3 true
complaint 2 'v6-slow=x: MS is a number' 'no number' v6-slow=x true
complaint 2 'rtt=-1: MS is a number' 'a negative round trip' --rtt -1 healthy true
complaint 2 'no command given' 'no command' healthy
complaint 2 'no command given' 'no command after --' healthy --
complaint 2 'unrecognized arguments: --nonsense' 'unknown option' healthy --nonsense true
complaint 2 'not both' 'bare and compared' --bare --compare healthy true
complaint 2 '--timeout takes seconds' 'no time at all' --timeout 0 healthy true
complaint 2 "not 'www.example'" 'a name of elsewhere' --name www.example healthy true
complaint 2 'No such file or directory' 'a file that cannot be written' --json /nonexistent/x healthy true
complaint 125 'No space left on device' 'a full disk' --bare --json /dev/full healthy true
complaint 126 "cannot execute '/etc/passwd'" 'no program' healthy /etc/passwd
complaint 127 "no such program: 'no-such-program'" 'no such program' healthy no-such-program
verdict '--list names each fault once' "$(sed -n 's/^    ("\([a-z0-9-]*\)", .*/\1/p' tests/netns/faults.py | sort)" \
  "$(scripts/happy-lab --list | awk '{ sub(/=.*/, "", $1); print $1 }' | sort)"
verdict '--list has what there must be' '' "$(for fault in healthy v6-drop v6-reset v6-unreachable v6-noroute v6-slow=MS \
  v4-drop first-address-dead all-dead aaaa-silent aaaa-late=MS a-silent ns-dead own-drop; do
  scripts/happy-lab --list | grep -q "^  $fault " || echo "$fault"; done)"
verdict '--help' 0 "$(scripts/happy-lab --help | grep -q '^usage: happy-lab FAULT' && echo 0)"

# ---- runs

lab v6-drop -- $walk www.test 7
verdict 'with libhappy: the status' 0 $?
verdict 'with libhappy: output, what the network saw, the end' 3 \
  "$(grep -c -e '^peer 198.51.100.1' -e 'accept  www.test 198.51.100.1:7$' -e '^The command: exit status 0' "$work/out")"
verdict 'with libhappy: two SYNs, the delay between them' True \
  "$(told "[':' in s['address'] for s in e('syn')] == [True, False] and 200 < e('syn')[1]['ms'] - e('syn')[0]['ms'] < 400")"
verdict 'with libhappy: one connection, after the lookup' True \
  "$(told "len(e('accept')) == 1 and 0 < e('query')[0]['ms'] < e('syn')[0]['ms'] < e('accept')[0]['ms'] < 2000")"
verdict 'the report names faults, command, names' "['v6-drop'] ['$walk', 'www.test', '7'] ['2001:db8:2::1', '198.51.100.1']" \
  "$(told "whole['faults'], whole['command'], r['names']['www.test']" | tr -d '()' | sed 's/\], /] /g')"

lab v6-drop --bare --timeout 1.5 -- $walk www.test 7
verdict 'bare: cut off' 124 $?
verdict 'bare: no connection, the same SYN again' True "$(told "not e('accept') and [s['again'] for s in e('syn')] == [False, True]")"
verdict 'bare: says so' 1 "$(grep -c '^The command: cut off after 1.5' "$work/out")"

lab v6-drop+aaaa-late=20 --compare --timeline --timeout 1.5 --rtt 60 -- $walk a.test 7
verdict 'compared: the status is that with libhappy' 0 $?
verdict 'compared: two runs' "['bare', 'happy']" "$(told 'list(runs)')"
verdict 'compared: the first was cut off' 'None False' "$(told "runs['bare']['status'], bool(e('accept', runs['bare']))" | tr -d '(),')"
verdict 'compared: a table at the end' 1 "$(tail -n 5 "$work/out" | grep -c '^first accepted  never  .*IPv4$')"
verdict 'compared: the timeline' 1 "$(grep -c 'winner .*198.51.100.1:7 ' "$work/out")"
verdict 'a round trip of one'\''s own' True "$(told "e('accept')[0]['ms'] - e('syn')[-1]['ms'] > 85")"

verdict 'standard input and output are the command'\''s' text "$(echo text | scripts/happy-lab healthy --bare cat | head -n 1)"
scripts/happy-lab healthy -- sh -c 'exit 7' >/dev/null
verdict 'the status is the command'\''s' 7 $?
scripts/happy-lab healthy -- sh -c 'kill -TERM $$' >"$work/out"
verdict 'the signal too' '143 1' "$? $(grep -c 'killed by SIGTERM' "$work/out")"
verdict 'the network is private' '' "$(ip -brief link 2>/dev/null | grep -e '^c0' -e '^s0')"

# Names: those mentioned, those asked for, one at least.
lab healthy --name b.c.test -- $walk http://a.test:80/x-a.test 7
verdict 'names that were mentioned or asked for' "['a.test', 'b.c.test', 'x-a.test']" "$(told "sorted(r['names'])")"
lab healthy -- true
verdict 'one name at least' "['lab.test']" "$(told "sorted(r['names'])")"

# What carries the mark of the program's own attempts is lost in own-drop, on the loopback too.
mark='import socket, sys
for to in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, 36, 0x68617070)  # SO_MARK
    s.settimeout(0.3)
    try:
        s.connect((to, 7))
    except OSError as error:
        print(type(error).__name__)'
verdict 'own-drop' 'timeout timeout timeout timeout' "$(scripts/happy-lab own-drop --bare -- /usr/bin/python3 -c "$mark" \
  127.0.0.1 ::1 198.51.100.1 2001:db8:2::1 | sed '/^$/,$d; s/TimeoutError/timeout/' | xargs)"
verdict 'the mark is that of the library' "$(sed -n 's/^#define HAPPY_SWAP_MARK \(.*\)u$/\1/p' shim/abi.h)" \
  "$(sed -n 's/^_OWN_SYN = "meta mark \([^ ]*\) .*/\1/p' tests/netns/faults.py)"

count_verdicts
