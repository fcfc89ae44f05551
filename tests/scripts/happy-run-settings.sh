#!/bin/sh
# Tests of scripts/happy-run: values of settings, configuration files, unknown names. Ends with
# "N passed, N failed".
. "$(dirname "$0")/clone"

user_config=$work/home/.config/libhappy.conf
system_config=$work/etc/libhappy.conf

# value_of NAME [NAME=VALUE...]: what the program gets, or "unset"; complaints show too.
value_of() {
  variable=$1
  shift
  env "$@" "$happy_run" sh -c "printf '%s' \"\${$variable-unset}\"" 2>&1
}

make --no-print-directory -s build/happy-pref64 >&2 && cp build/happy-pref64 "$clone/build/" || exit 1

# ---- every number of the table

numbers=$(sed -n "s/^happy_run_knob \([A-Z0-9_]*\) number '[^']*' '[^']*' '\([0-9]*\)' '\([0-9]*\)'.*/\1 \2 \3/p" \
  build/happy-knobs)
verdict 'the table has numbers' yes "$([ "$(echo "$numbers" | wc -l)" -ge 5 ] && echo yes)"
delays='HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS HAPPY_CONNECTION_ATTEMPT_DELAY_MS
  HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS'
# A file, so that the loop runs in this shell.
echo "$numbers" >"$work/numbers"
while read -r knob low high; do
  for good in "$low" "$high" "00$low"; do
    # The delays must rise, so they are all given the same.
    set -- "$knob=$good"
    case $delays in
      *$knob*) for delay in $delays; do set -- "$@" "$delay=$good"; done ;;
    esac
    verdict "$knob=$good" "$good" "$(value_of "$knob" "$@")"
  done
  for bad in $((low - 1)) $((high + 1)) x 5x -1 +1 ' 1' 1.0 0x10 9999999999 99999999999999999999; do
    complaint 2 "$knob is '$bad': " "$knob=$bad" env "$knob=$bad" "$happy_run" true
  done
done <"$work/numbers"
complaint 2 'HAPPY_RESOLUTION_DELAY_MS is '\''10001'\'': it takes 0 to 10000 ms' 'the line says the range' \
  env HAPPY_RESOLUTION_DELAY_MS=10001 "$happy_run" true
verdict 'a choice is taken' v2 "$(value_of HAPPY_PROFILE HAPPY_PROFILE=v2)"
complaint 2 "HAPPY_PROFILE is 'v3': it takes one of standard, fast, v2" 'a choice that is none' \
  env HAPPY_PROFILE=v3 "$happy_run" true
for knob in $delays; do
  complaint 2 "$knob is '9': the specification forbids less than 10 ms between attempts" "$knob: what is forbidden" \
    env "$knob=9" "$happy_run" true
done
complaint 2 'HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS (100) is above HAPPY_CONNECTION_ATTEMPT_DELAY_MS (50)' \
  'a delay below the default minimum' env HAPPY_CONNECTION_ATTEMPT_DELAY_MS=50 "$happy_run" true
complaint 2 'HAPPY_CONNECTION_ATTEMPT_DELAY_MS (250) is above HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS (200)' \
  'a maximum below the default delay' env HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS=200 "$happy_run" true
verdict 'an empty value is none' '' "$(value_of HAPPY_RESOLUTION_DELAY_MS HAPPY_RESOLUTION_DELAY_MS= HAPPY_FORCE= HAPPY_TRACE=)"

# ---- words and paths

verdict 'one word' swap "$(value_of HAPPY_FORCE HAPPY_FORCE=swap)"
verdict 'several words' fail:dup3,swap "$(value_of HAPPY_FORCE HAPPY_FORCE=fail:dup3,swap)"
verdict 'prefixes' 2001:db8::/32,64:ff9b::/96 "$(value_of HAPPY_PREF64 HAPPY_PREF64=2001:db8::/32,64:ff9b::/96)"
verdict 'no prefix' none "$(value_of HAPPY_PREF64 HAPPY_PREF64=none)"
verdict 'every length' 2001:db8::/32,2001:db8:100::/40,2001:db8:1::/48,2001:db8:1:100::/56,2001:db8:1:1::/64,64:FF9B:1::/96 \
  "$(value_of HAPPY_PREF64 \
    HAPPY_PREF64=2001:db8::/32,2001:db8:100::/40,2001:db8:1::/48,2001:db8:1:100::/56,2001:db8:1:1::/64,64:FF9B:1::/96)"
for bad in all 64:ff9b:: 64:ff9b::/95 none,64:ff9b::/96 192.0.2.0/96 '64:ff9b::/96 x' ' 64:ff9b::/96' :::/96 ::/96 ::/32 \
  ::ffff:0:0/96 fe80::/64 fe80::%lo/64 ff00::/96 ff02::/32 64:ff9b::1/96 64:ff9b::192.0.2.1/96 2001:db8:1::/32 2001:db8:1:1::/56 \
  2001:db8:0:0:100::/96 2001:db8::/0 2001:db8::/032 2001:db8::/33 2001:db8::/128 2001:db8::/9600 2001:db8::/ /96 , \
  ,64:ff9b::/96 64:ff9b::/96, 64:ff9b::/96,,2001:db8::/96 64:ff9b::/96,64:ff9b::/96 64:ff9b::/96,2001:db8::/96,64:FF9B:0::/96 \
  1::/96,2::/96,3::/96,4::/96,5::/96,6::/96,7::/96,8::/96,9::/96; do
  complaint 2 "HAPPY_PREF64 is '$bad': it takes a list of prefixes, or none; '" "HAPPY_PREF64=$bad" \
    env HAPPY_PREF64="$bad" "$happy_run" true
  printf '%s\n' "$bad" >>"$work/refused-prefixes"
done
complaint 2 "'64:ff9b::1/96': bits beyond its length are set" 'the line says which prefix, and why' \
  env HAPPY_PREF64=2001:db8::/96,64:ff9b::1/96,::/96 "$happy_run" true
for bad in swapp swa, ,swap swap,,swap 'swap fail:dup3' '*' fail; do
  complaint 2 "HAPPY_FORCE is '$bad': it takes a list of swap" "HAPPY_FORCE=$bad" env HAPPY_FORCE="$bad" "$happy_run" true
done
verdict 'a new file for the trace' "$work/new" "$(value_of HAPPY_TRACE HAPPY_TRACE="$work/new")"
verdict 'standard error for the trace' - "$(value_of HAPPY_TRACE HAPPY_TRACE=-)"
complaint 2 'its folder does not exist' 'trace into no folder' env HAPPY_TRACE=/nonexistent/x "$happy_run" true
complaint 2 'not a regular file' 'trace into a device' env HAPPY_TRACE=/dev/null "$happy_run" true
complaint 2 'not a regular file' 'trace into a folder' env HAPPY_TRACE="$work" "$happy_run" true
ln -s new "$work/trace-link"
complaint 2 'a symbolic link is not followed' 'trace through a link' env HAPPY_TRACE="$work/trace-link" "$happy_run" true
verdict '--trace' "$work/t" "$("$happy_run" --trace "$work/t" sh -c 'echo "$HAPPY_TRACE"')"
verdict '--trace with a relative path' "$work/t" "$(cd "$work" && "$happy_run" --trace t sh -c 'echo "$HAPPY_TRACE"')"
verdict '--trace -' - "$("$happy_run" --trace - sh -c 'echo "$HAPPY_TRACE"')"
complaint 2 '--trace needs a file' '--trace without a file' "$happy_run" --trace

# ---- configuration files

printf '# a comment\n\n  HAPPY_RESOLUTION_DELAY_MS=70  \n\tHAPPY_TRACE=%s/a b\nHAPPY_PARTIAL=0' "$work" >"$user_config"
verdict 'from the user'\''s file' 70 "$(value_of HAPPY_RESOLUTION_DELAY_MS)"
verdict 'a value with a space' "$work/a b" "$(value_of HAPPY_TRACE)"
verdict 'a last line without an end' 0 "$(value_of HAPPY_PARTIAL)"
verdict 'the environment wins' 80 "$(value_of HAPPY_RESOLUTION_DELAY_MS HAPPY_RESOLUTION_DELAY_MS=80)"
verdict 'also by nothing' '' "$(value_of HAPPY_RESOLUTION_DELAY_MS HAPPY_RESOLUTION_DELAY_MS=)"
verdict '--trace wins' - "$("$happy_run" --trace - sh -c 'echo "$HAPPY_TRACE"')"
printf 'HAPPY_RESOLUTION_DELAY_MS=90\nHAPPY_CONNECTION_ATTEMPT_DELAY_MS=300\n' >"$system_config"
verdict 'the user'\''s file wins over the system'\''s' 70 "$(value_of HAPPY_RESOLUTION_DELAY_MS)"
verdict 'from the system'\''s file' 300 "$(value_of HAPPY_CONNECTION_ATTEMPT_DELAY_MS)"
mkdir "$work/xdg"
echo HAPPY_RESOLUTION_DELAY_MS=60 >"$work/xdg/libhappy.conf"
verdict 'XDG_CONFIG_HOME' 60 "$(value_of HAPPY_RESOLUTION_DELAY_MS XDG_CONFIG_HOME="$work/xdg")"
verdict 'no HOME' 90 "$(env -u HOME "$happy_run" sh -c 'echo "$HAPPY_RESOLUTION_DELAY_MS"')"
verdict '--check says where a value comes from' "setting   HAPPY_CONNECTION_ATTEMPT_DELAY_MS=300 ($system_config:2)" \
  "$("$happy_run" --check true | grep HAPPY_CONNECTION)"
echo 'HAPPY_PARTIAL=2' >"$user_config"
complaint 2 "$user_config:1: HAPPY_PARTIAL is '2': it takes 0, 1" 'a bad value in a file' "$happy_run" true
for bad in 'nonsense' 'PATH=/' 'export HAPPY_PARTIAL=0' 'HAPPY_PARTIAL = 0' 'HAPPY_$(reboot)=1'; do
  printf '\n%s\n' "$bad" >"$user_config"
  complaint 2 "$user_config:2: " "a bad line in a file: $bad" "$happy_run" true
done
echo 'HAPPY_TRACE=$(touch '"$work"'/touched)`id`' >"$user_config"
"$happy_run" true 2>/dev/null
verdict 'nothing in a file is executed' no "$([ -e "$work/touched" ] && echo yes || echo no)"
printf '\357\273\277HAPPY_RESOLUTION_DELAY_MS=70\r\n\r\n# a comment\r\nHAPPY_PARTIAL=0\r\n' >"$user_config"
verdict 'a file from Windows' '70 0' "$(value_of HAPPY_RESOLUTION_DELAY_MS) $(value_of HAPPY_PARTIAL)"
rm "$user_config" "$system_config"
mkdir "$user_config"
complaint 0 "$user_config is not a file that can be read" 'a folder in its place' "$happy_run" true
rmdir "$user_config"
ln -s /dev/null "$user_config"
verdict 'an empty device in its place' '' "$("$happy_run" true 2>&1)"
rm "$user_config"

# ---- unknown names

complaint 0 'HAPPY_RESOLUTION_DELAY is no setting; HAPPY_RESOLUTION_DELAY_MS is' 'unknown, and what is near' \
  env HAPPY_RESOLUTION_DELAY=1 "$happy_run" true
complaint 0 'HAPPY_CONNECTION_ATTEMPT_DELAY is no setting; HAPPY_CONNECTION_ATTEMPT_DELAY_MS is' 'the nearest of several' \
  env HAPPY_CONNECTION_ATTEMPT_DELAY=1 "$happy_run" true
complaint 0 'HAPPY_DISABEL is no setting; HAPPY_DISABLE is' 'letters exchanged' env HAPPY_DISABEL=1 "$happy_run" true
verdict 'the program gets it all the same' 1 "$(HAPPY_X=1 "$happy_run" sh -c 'echo "$HAPPY_X"' 2>/dev/null)"
verdict '--quiet' '' "$(HAPPY_DISABEL=1 "$happy_run" --quiet true 2>&1)"
verdict 'other names' '' "$(env XHAPPY_A=1 happy_a=1 HAPPYA=1 'OTHER=
HAPPY_B=2' "$happy_run" true 2>&1)"
echo HAPPY_DISABEL=1 >"$user_config"
complaint 0 'HAPPY_DISABEL is no setting' 'unknown in a file' "$happy_run" true
rm "$user_config"

# ---- the bare library: the default, and one line in the trace

if [ -e build/libhappy.so ]; then
  HAPPY_PARTIAL=2 HAPPY_FORCE='x"y' HAPPY_TRACE="$work/trace" LD_PRELOAD=$PWD/build/libhappy.so \
    getent ahosts localhost >/dev/null
  verdict 'refused values are in the trace, once' '1 "values":2}' "$(
    grep -c setting_refused "$work/trace") $(sed -n '1s/.*"setting_refused".*,//p' "$work/trace")"
  while IFS= read -r bad; do
    HAPPY_PREF64="$bad" HAPPY_TRACE="$work/prefixes" LD_PRELOAD=$PWD/build/libhappy.so getent ahosts localhost >/dev/null
    verdict "the library refuses $bad, too" 1 "$(grep -c '"setting_refused".*HAPPY_PREF64=' "$work/prefixes")"
    rm -f "$work/prefixes"
  done <"$work/refused-prefixes"
fi

# ---- help

verdict '--help names every setting' '' "$(sed -n 's/^happy_run_knob \([A-Z0-9_]*\) .*/\1/p' build/happy-knobs |
  while read -r name; do "$happy_run" --help | grep -q "^  $name (" || echo "$name"; done)"
verdict '--help without a built library' 0 "$(mkdir -p "$work/bare/scripts" && cp "$happy_run" "$work/bare/scripts" &&
  "$work/bare/scripts/happy-run" --help | grep -q '^Usage' && echo 0)"

# ---- other shells

for shell in 'bash --posix' 'busybox sh' mksh; do
  command -v "${shell%% *}" >/dev/null || continue
  verdict "$shell: a value is refused" 2 "$($shell "$happy_run" true 2>/dev/null; HAPPY_PARTIAL=2 $shell "$happy_run" true 2>/dev/null; echo $?)"
  verdict "$shell: an unknown name" "happy-run: HAPPY_DISABEL is no setting; HAPPY_DISABLE is" \
    "$(HAPPY_DISABEL=1 $shell "$happy_run" true 2>&1)"
  verdict "$shell: --check" 'verdict   libhappy will be loaded' "$($shell "$happy_run" --check sh | tail -n 1)"
  verdict "$shell: LD_PRELOAD" "$library:$other" "$(LD_PRELOAD="$other" $shell "$happy_run" sh -c 'printf %s "$LD_PRELOAD"')"
done

count_verdicts
