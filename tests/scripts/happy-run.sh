#!/bin/sh
# Tests of scripts/happy-run: finding the library, LD_PRELOAD, being out of the program's way, installing.
# Ends with "N passed, N failed".
. "$(dirname "$0")/clone"

# ---- finding the library

verdict 'the library of the clone is loaded' loaded "$(STUB_FD=3 "$happy_run" true 3>&1 | tail -n 1)"
verdict 'its path is absolute' "$library" "$(preload_of "$happy_run")"
verdict 'also when called by a relative path' "$library" "$(cd "$clone/scripts" && preload_of ./happy-run)"
ln -s ../clone/scripts/happy-run "$work/bin/happy-run"
ln -s bin/happy-run "$work/link"
verdict 'through two symbolic links' "$library" "$(preload_of "$work/link")"
verdict 'through PATH' "$library" "$(preload_of PATH="$work/bin:$PATH" happy-run)"
verdict 'from the folder of the libraries' "$work/elsewhere/libhappy.so" "$(
  cp "$clone"/build/* "$happy_run" "$work/elsewhere/" && preload_of "$work/elsewhere/happy-run")"

# ---- LD_PRELOAD

verdict 'prepended with a colon' "$library:$other" "$(preload_of LD_PRELOAD="$other" "$happy_run")"
verdict 'spaces and empty entries between others' "$library:$other:$other" \
  "$(preload_of LD_PRELOAD=" $other::$other: " "$happy_run")"
verdict 'once only' "$library" "$(preload_of "$happy_run" "$happy_run" "$happy_run")"
verdict 'kept where it is' "$other:$library" "$(preload_of LD_PRELOAD="$other:$library" "$happy_run")"
ln -s "$library" "$work/alias.so"
verdict 'known under another path' "$work/alias.so" "$(preload_of LD_PRELOAD="$work/alias.so" "$happy_run")"
verdict 'listed twice already, once after' "$library:$other" \
  "$(preload_of LD_PRELOAD="$library:$other:$library" "$happy_run")"
verdict 'another copy gives way' "$library:$other" \
  "$(preload_of LD_PRELOAD="$other:$work/elsewhere/libhappy.so" "$happy_run")"
verdict 'a pattern is no pattern' "$library:$work/*.so" \
  "$(preload_of LD_PRELOAD="$work/*.so" "$happy_run" 2>/dev/null)"

# ---- the program is itself

"$happy_run" sh -c 'exit 7'
verdict 'exit status' 7 $?
"$happy_run" sh -c 'kill -TERM $$' 2>/dev/null
verdict 'death by a signal' 143 $?
"$happy_run" sleep 60 &
pid=$!
tries=0
while [ "$(cat /proc/$pid/comm 2>/dev/null)" != sleep ] && [ "$tries" -lt 500 ]; do
  tries=$((tries + 1))
  sleep 0.01
done
verdict 'the program takes the place of happy-run' sleep "$(cat /proc/$pid/comm)"
kill -INT "$pid" 2>/dev/null || :
kill -TERM "$pid"
wait "$pid" 2>/dev/null
verdict 'a signal sent to happy-run is the program'\''s' 143 $?

verdict 'arguments are kept' '<a b><><*><$x><--help><
>' "$("$happy_run" printf '<%s>' 'a b' '' '*' '$x' --help '
')"
verdict 'standard input is the program'\''s' text "$(echo text | "$happy_run" cat)"
verdict 'the environment is unchanged but for LD_PRELOAD' "$(
  env -i PATH="$PATH" PWD="$PWD" rest=1 entry=2 found=3 folder=4 env | sort)" "$(
  env -i PATH="$PATH" PWD="$PWD" rest=1 entry=2 found=3 folder=4 "$happy_run" env | grep -v '^LD_PRELOAD=' | sort)"
verdict 'the working folder is unchanged' "$work" "$(cd "$work" && "$happy_run" pwd)"
mkdir "$work/with space"
printf '#!/bin/sh\necho "$0"\n' >"$work/with space/program"
chmod +x "$work/with space/program"
verdict 'a program in a path with a space' "$work/with space/program" "$("$happy_run" "$work/with space/program")"
verdict 'a program found through PATH with a space' "$work/with space/program" \
  "$(PATH="$work/with space:$PATH" "$happy_run" program)"
printf 'echo script\n' >"$work/bin/no-interpreter"
chmod +x "$work/bin/no-interpreter"
verdict 'a script without #! runs as execvp would run it' script "$("$happy_run" "$work/bin/no-interpreter")"

# ---- options

verdict '--version' "happy-run $(sed -n 's/^happy_run_version=//p' scripts/happy-run)" "$("$happy_run" --version)"
verdict '--help' 0 "$("$happy_run" --help | grep -q 'Usage: happy-run' && echo $?)"
verdict 'options end at --' ok "$("$happy_run" -- echo ok)"
verdict 'options end at the program' '--version' "$("$happy_run" sh -c 'echo "$1"' sh --version)"

# ---- wrong use

complaint 2 'no program given: happy-run [--check]' 'no program' "$happy_run"
complaint 2 'no program given' 'no program after --' "$happy_run" --
complaint 2 "unknown option '--nonsense': happy-run [" 'unknown option' "$happy_run" --nonsense true
complaint 127 "no such program: 'no-such-program'" 'program not in PATH' "$happy_run" no-such-program
complaint 127 "no such program: '/nonexistent/x'" 'program not at its path' "$happy_run" /nonexistent/x
complaint 127 "no such program: ''" 'empty program' "$happy_run" ''
complaint 126 "cannot execute '$work/stub.c'" 'program not executable' "$happy_run" "$work/stub.c"
complaint 126 "cannot execute '$work'" 'program is a folder' "$happy_run" "$work"
cp "$work/stub.c" "$work/bin/plain-file"
complaint 126 "cannot execute 'plain-file'" 'program in PATH not executable' \
  env PATH="$work/bin:$PATH" "$happy_run" plain-file

for bad in 'a space' 'a:colon' 'a$LIB'; do
  mkdir -p "$work/$bad/scripts" "$work/$bad/build"
  cp "$happy_run" "$work/$bad/scripts/"
  cp "$clone"/build/* "$work/$bad/build/"
  complaint 2 'LD_PRELOAD cannot carry' "clone in a path like '$bad'" "$work/$bad/scripts/happy-run" true
done
mv "$clone/build/libhappy-engine.so" "$work/engine.so"
complaint 2 "no libhappy-engine.so in '$clone/build'" 'engine missing' "$happy_run" true
mv "$library" "$work/library.so"
complaint 2 "no libhappy.so in '$clone/build'" 'library missing' "$happy_run" true
mv "$work/engine.so" "$clone/build/libhappy-engine.so"
mv "$work/library.so" "$library"

# ---- installed: what `make install` writes, with the stubs in place of the libraries

# install_stub VARIABLES...: installs below $work/root without building.
install_stub() {
  make --no-print-directory -s -o all -o build/libhappy.so -o build/libhappy-engine.so \
    -o build/libhappy-netlink.so -o build/happy-pref64 -f "$PWD/Makefile" \
    -C "$clone" DESTDIR="$work/root" "$@" install
}
installed_value() {
  sed -n "s/^happy_run_installed_$2=//p" "$work/root$1/bin/happy-run"
}
multiarch=$(${CC:-gcc} -print-multiarch)
install_stub PREFIX=/usr
if [ -n "$multiarch" ]; then
  verdict 'in a system folder: the token of the loader' "'/usr/\$LIB/libhappy.so'" "$(installed_value /usr library)"
  verdict 'in a system folder: the folder' "'/usr/lib/$multiarch'" "$(installed_value /usr folder)"
fi
verdict 'modes' '755 644 644' "$(stat -c %a "$work/root/usr/bin/happy-run" \
  "$work/root/usr/lib/$multiarch/libhappy.so" "$work/root/usr/lib/$multiarch/libhappy-engine.so" | xargs)"
install_stub PREFIX=/opt/happy LIBDIR=/opt/happy/lib
verdict 'elsewhere: the path' "'/opt/happy/lib/libhappy.so'" "$(installed_value /opt/happy library)"
complaint 2 "no libhappy.so in '/opt/happy/lib'" 'installed, library missing' "$work/root/opt/happy/bin/happy-run" true
install_stub DESTDIR= PREFIX="$work/prefix"
verdict 'an installed copy runs' "$work/prefix/lib/libhappy.so" "$(preload_of "$work/prefix/bin/happy-run")"
verdict 'the installed copy replaces that of the clone' "$work/prefix/lib/libhappy.so" \
  "$(preload_of "$happy_run" "$work/prefix/bin/happy-run")"
# Says where install(1) writes to a path that programs may be looking at.
cat >"$work/bin/install" <<'WATCH'
#!/bin/sh
for last; do :; done
[ "$1" = -d ] || [ ! -e "$last" ] || echo "$last"
PATH=${PATH#*:} exec install "$@"
WATCH
chmod +x "$work/bin/install"
verdict 'a second install never takes a file away' '' "$(
  PATH=$work/bin:$PATH && install_stub DESTDIR= PREFIX="$work/prefix" 2>&1)"
make -s -C "$clone" -f "$PWD/Makefile" DESTDIR= PREFIX="$work/prefix" uninstall >/dev/null
verdict 'uninstall leaves no file' '' "$(find "$work/prefix" -type f)"

count_verdicts
