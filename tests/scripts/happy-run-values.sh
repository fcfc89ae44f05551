#!/bin/sh
# Tests of scripts/happy-run: it takes of every setting what the library takes, and nothing else. Ends with
# "N passed, N failed".
. "$(dirname "$0")/clone"

make --no-print-directory -s build/obj/list-knobs build/happy-pref64 >&2 && cp build/happy-pref64 "$clone/build/" || exit 1

end='
'
tab=$(printf '\t')
# The values that are judged, each behind a "|": for every setting, and for those that are no numbers.
numbers="|| |,|,,|1 | 1|1$end|$end|1$tab|+5|-5|-0|0x10|1e3|1.0|1,|,1|1,,1|1 1|0|1|5|10|250|2000|007|000000001|0000000001|4294967297\
|99999999999999999999|none|on|fast|*|\$(exit 3)|é|'|\""
words="|None|off|off on|on,off|ON|standard fast|fast v2|standard fast v2|fast,v2|fast,| fast|fast$end|never|ipv6-only always\
|always never|swap|swap fail:thread|swap,fail:proc|swap,|,swap|swap,,swap|swap$end|fail:|fail\
|443=https|0=x|65535=x|65536=x|00443=x|000443=x|8443=HTTPS|8443=a_b|8443=|=https|443=https=x|443=https 853=dot\
|443=https,853=dot|443=https,,853=dot|443=https,|1=abcdefghijklmno|1=abcdefghijklmnop|1=a,2=a,3=a,4=a,5=a,6=a,7=a,8=a\
|1=a,2=a,3=a,4=a,5=a,6=a,7=a,8=a,9=a|imap|imap=143|imap=0|imap=65535|imap=65536|imap=00143|imap=000143|imap=143,|imap=+143\
|imap= 143|imap =143|IMAP|_imap|imap=143=1|imap=|=143|xmpp-client,xmpp-server|none,imap|abcdefghijklmno|abcdefghijklmnop\
|abcdefghijklmnop=1|a,b,c,d,e,f,g,h|a,b,c,d,e,f,g,h,i|?|[a-z]*|\`exit 3\`|\\|64:ff9b::/96|64:ff9b::1/96|64:ff9b::/96$end"

# agree KNOB KIND: one verdict on all values.
agree() {
  values=$numbers
  [ "$2" = number ] || values=$numbers$words
  values=${values#|}'|'
  rest=$values
  while [ -n "$rest" ]; do
    printf '%s\0' "$1=${rest%%|*}"
    rest=${rest#*|}
  done | xargs -0 build/obj/list-knobs judge >"$work/judged"
  differs=
  taken=0
  exec 3<"$work/judged"
  rest=$values
  while [ -n "$rest" ]; do
    value=${rest%%|*}
    rest=${rest#*|}
    read -r want <&3
    env "$1=$value" "$happy_run" true >"$work/out" 2>"$work/err"
    got="status $?, $(wc -l <"$work/err") lines"
    case $got in
      'status 0, 0 lines') got=taken ;;
      'status 2, 1 lines') got=refused ;;
    esac
    [ "$got" != taken ] || taken=$((taken + 1))
    [ "$want" = "$got" ] || differs="$differs'$value': $want, by happy-run: $got; "
  done
  exec 3<&-
  [ "$taken" -ge 2 ] || differs="$differs only $taken taken"
  verdict "$1 ($2): happy-run takes what the library takes" '' "$differs"
}

# In the order of the table, where happy-run checks it. A path is not judged by the library until it is opened.
sed -n 's/^happy_run_knob \([A-Z0-9_]*\) \([a-z0-9]*\) .*/\1 \2/p' build/happy-knobs | grep -v ' path$' >"$work/knobs"
verdict 'the table has settings of every other kind' 'choice number prefixes services srv words' \
  "$(sed 's/.* //' "$work/knobs" | sort -u | tr '\n' ' ' | sed 's/ $//')"
while read -r knob kind; do
  agree "$knob" "$kind"
done <"$work/knobs"

count_verdicts
