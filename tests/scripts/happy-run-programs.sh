#!/bin/sh
# Tests of scripts/happy-run: what it finds out about programs. Ends with "N passed, N failed".
. "$(dirname "$0")/clone"

cc=${CC:-gcc}
chmod 0755 "$work"

# warned TEXT NAME COMMAND...: one line with TEXT on standard error and the program runs all the same.
warned() {
  want=$1
  name=$2
  shift 2
  got=$("$@" 2>"$work/err")
  case $(cat "$work/err") in
    'happy-run: '*"$want"*) ;;
    *) got="$got: $(cat "$work/err")" ;;
  esac
  verdict "$name" "ran, 1 line" "$got, $(wc -l <"$work/err") line"
}

# helped NAME COMMAND...: the library is loaded, nothing is said.
helped() {
  name=$1
  shift
  verdict "$name" 'ran
loaded' "$(STUB_FD=3 "$@" 2>&1 3>"$work/loaded"; tail -n 1 "$work/loaded")"
}

# checked STATUS TEXT NAME FILE: --check ends with a verdict that holds TEXT.
checked() {
  got=$("$happy_run" --check "$4" 2>&1)
  status=$?
  last=$(printf '%s\n' "$got" | tail -n 1)
  case $last in
    'verdict   '*"$2"*) last=good ;;
  esac
  verdict "$3" "$1 good" "$status $last"
}

cat >"$work/program.c" <<'PROGRAM'
#include <stdio.h>
int main(void) { return puts("ran") < 0; }
PROGRAM
build() {
  output=$work/$1
  shift
  $cc -o "$output" "$work/program.c" "$@"
}

# ---- how it is linked

build dynamic
helped 'a dynamic program' "$happy_run" "$work/dynamic"
build no-pie -no-pie
helped 'not position-independent' "$happy_run" "$work/no-pie"
cp "$work/dynamic" "$work/nmap"
warned "'$work/nmap' tells which addresses answer" 'a prober' "$happy_run" "$work/nmap"
build static -static
warned "'$work/static' is statically linked" 'static' "$happy_run" "$work/static"
build static-pie -static-pie
warned "'$work/static-pie' is statically linked" 'static-pie' "$happy_run" "$work/static-pie"
verdict '--quiet' ran "$("$happy_run" --quiet "$work/static" 2>&1)"
verdict 'children of a static program are helped' "$library" "$("$happy_run" --check "$work/static" | sed -n 's/^preload   LD_PRELOAD=//p')"
verdict 'no warning when all is off' ran "$(HAPPY_DISABLE=1 "$happy_run" "$work/static" 2>&1)"

cat >"$work/go.s" <<'GO'
.section .note.go.buildid,"a",@note
.long 4, 8, 4
.ascii "Go\0\0"
.ascii "build/id"
.section .note.GNU-stack,"",@progbits
GO
build go-static -static "$work/go.s"
warned "'$work/go-static' is a Go program" 'Go, static' "$happy_run" "$work/go-static"
build go-cgo "$work/go.s"
warned "'$work/go-cgo' is a Go program" 'Go, with libc' "$happy_run" "$work/go-cgo"
# As the Go linker lays it out: a program header for a note that ends the first page.
{
  printf '\177ELF\002\001\001\0\0\0\0\0\0\0\0\0\002\0\076\0\001\0\0\0\0\0\0\0\0\0\0\0\100\0\0\0\0\0\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0\100\0\070\0\001\0\100\0\0\0\0\0'
  printf '\004\0\0\0\004\0\0\0\234\017\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\144\0\0\0\0\0\0\0'
  printf '\144\0\0\0\0\0\0\0\004\0\0\0\0\0\0\0'
  dd if=/dev/zero bs=1 count=3876 2>/dev/null
  printf '\004\0\0\0\123\0\0\0\004\0\0\0Go\0\0'
  dd if=/dev/zero bs=1 count=84 2>/dev/null
} >"$work/go-page"
chmod +x "$work/go-page"
case $(cat build/happy-knobs) in
  *"happy_run_machine='2 1 62'"*) checked 1 'is a Go program' 'Go, the note at the end of the page' "$work/go-page" ;;
esac

# ---- another loader, machine, word size

loader=$(readelf -lW "$work/dynamic" | sed -n 's/.*program interpreter: \(.*\)]/\1/p')
ln -s "$loader" "$work/ld-musl-x86_64.so.1"
build musl -Wl,--dynamic-linker="$work/ld-musl-x86_64.so.1"
warned "'$work/musl' uses another C library than libhappy ($work/ld-musl-x86_64.so.1): running it without" 'musl' \
  "$happy_run" "$work/musl"
verdict 'musl: the library stays out' '' "$(STUB_FD=3 "$happy_run" "$work/musl" 2>/dev/null 3>&1 >/dev/null)"
verdict 'musl: the others stay in' "preload   LD_PRELOAD=$other" \
  "$(LD_PRELOAD="$library:$other" "$happy_run" --check "$work/musl" | grep ^preload)"
ln -s "$loader" "$work/ld-linux-elsewhere.so.2"
build other-place -Wl,--dynamic-linker="$work/ld-linux-elsewhere.so.2"
helped "glibc's loader at another place" "$happy_run" "$work/other-place"
verdict 'the loader itself' ran "$("$happy_run" "$loader" "$work/dynamic" 2>&1)"

# patched NAME OFFSET BYTES: a copy of the dynamic program with other bytes in its header.
patched() {
  cp "$work/dynamic" "$work/$1"
  printf "$3" | dd of="$work/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
patched class 4 '\001'
checked 1 'is for another machine or word size' '32 bits' "$work/class"
patched machine 18 '\267\001'
checked 1 'is for another machine or word size' 'another machine' "$work/machine"
patched order 5 '\002'
checked 1 'is for another machine or word size' 'another order of bytes' "$work/order"
patched osabi 7 '\003'
checked 0 'libhappy will be loaded' 'GNU as the system' "$work/osabi"
verdict 'the library stays out' 'preload   LD_PRELOAD=' "$("$happy_run" --check "$work/class" | grep ^preload)"

# Installed, with a library for 32-bit programs or without.
patched i386 4 '\001\001\001\0\0\0\0\0\0\0\0\0\003\0\003\0'
mkdir -p "$work/usr/lib/x86_64-linux-gnu" "$work/usr/lib/i386-linux-gnu"
cp "$clone"/build/*.so "$work/usr/lib/x86_64-linux-gnu/"
sed -e "s|^\(happy_run_installed_library=\).*|\1'$work/usr/\$LIB/libhappy.so'|" \
  -e "s|^\(happy_run_installed_folder=\).*|\1'$work/usr/lib/x86_64-linux-gnu'|" \
  -e "s|^  \. .*|. '$clone/build/happy-knobs'|" "$happy_run" >"$work/usr/happy-run"
chmod +x "$work/usr/happy-run"
verdict 'no library for 32 bits' 1 "$("$work/usr/happy-run" --check "$work/i386" >/dev/null; echo $?)"
touch "$work/usr/lib/i386-linux-gnu/libhappy.so"
verdict 'a library for 32 bits' 0 "$("$work/usr/happy-run" --check "$work/i386" >/dev/null; echo $?)"
verdict 'the token is kept' "$work/usr/\$LIB/libhappy.so" "$("$work/usr/happy-run" sh -c 'printf %s "$LD_PRELOAD"' 2>&1)"

# ---- sanitizers

sanitized() {
  sanitizer=$1
  shift
  build "$sanitizer" "$@" 2>/dev/null || return 0
  path=$("$loader" --list "$work/$sanitizer" | sed -n "s/.*=> \(.*lib$sanitizer.so[^ ]*\) .*/\1/p")
  verdict "$sanitizer: behind its library" "preload   LD_PRELOAD=$path:$library" \
    "$("$happy_run" --check "$work/$sanitizer" | grep ^preload)"
  verdict "$sanitizer: behind its library, before others" "preload   LD_PRELOAD=$path:$library:$other" \
    "$(LD_PRELOAD="$other" "$happy_run" --check "$work/$sanitizer" | grep ^preload)"
}
sanitized asan -fsanitize=address
sanitized tsan -fsanitize=thread
cp "$other" "$work/libasan.so.99"
fake=$work/libasan.so.99
verdict 'behind a preloaded sanitizer' "preload   LD_PRELOAD=$fake:$library:$other" \
  "$(LD_PRELOAD="$fake:$other" "$happy_run" --check "$work/dynamic" | grep ^preload)"
verdict 'moved behind a preloaded sanitizer' "preload   LD_PRELOAD=$other:$fake:$library" \
  "$(LD_PRELOAD="$library:$other:$fake" "$happy_run" --check "$work/dynamic" | grep ^preload)"
verdict 'kept behind a preloaded sanitizer' "preload   LD_PRELOAD=$fake:$other:$library" \
  "$(LD_PRELOAD="$fake:$other:$library" "$happy_run" --check "$work/dynamic" | grep ^preload)"
[ ! -e "$work/asan" ] || helped 'asan: runs' "$happy_run" "$work/asan"
verdict 'a static asan needs nothing' "preload   LD_PRELOAD=$library" "$(
  build asan-inside -fsanitize=address -static-libasan 2>/dev/null || cp "$work/dynamic" "$work/asan-inside"
  "$happy_run" --check "$work/asan-inside" | grep ^preload)"
printf '#include <stdio.h>\nint main(void) { return puts("ran") < 0; }\nint libasan_so(void) __asm__("libasan.so.8");
int libasan_so(void) { return 1; }\n' >"$work/mention.c"
$cc -rdynamic -o "$work/mention" "$work/mention.c"
verdict 'the name alone means nothing' "preload   LD_PRELOAD=$library" "$("$happy_run" --check "$work/mention" | grep ^preload)"

# ---- privileges; what is planted here raises none when root itself starts it

if [ "$(id -u)" -eq 0 ]; then
  cp "$work/dynamic" "$work/set-uid"
  chmod u+s "$work/set-uid"
  checked 0 'libhappy will be loaded' 'set-uid to oneself' "$work/set-uid"
  chown nobody "$work/set-uid"
  chmod u+s "$work/set-uid"
  warned 'is set-uid' 'set-uid' "$happy_run" "$work/set-uid"
  cp "$work/dynamic" "$work/set-gid"
  chgrp nogroup "$work/set-gid"
  chmod g+s "$work/set-gid"
  warned 'is set-gid' 'set-gid' "$happy_run" "$work/set-gid"
  cp "$work/dynamic" "$work/capable"
  if PATH=$PATH:/usr/sbin setcap cap_net_raw+p "$work/capable" 2>/dev/null; then
    checked 0 'libhappy will be loaded' 'capabilities of a file, for root' "$work/capable"
    warned 'has file capabilities' 'capabilities of a file' \
      setpriv --reuid nobody --regid nogroup --clear-groups "$happy_run" "$work/capable"
  fi
  cp "$work/dynamic" "$work/unreadable"
  chmod 0711 "$work/unreadable"
  verdict 'a program that cannot be read' ran "$(
    setpriv --reuid nobody --regid nogroup --clear-groups "$happy_run" "$work/unreadable" 2>&1)"
fi

# ---- scripts

script() {
  printf '%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
script by-static "#! $work/static"
warned "'$work/static' is statically linked" 'a script for a static program' "$happy_run" "$work/by-static"
script by-script "#!$work/by-static"
warned "'$work/static' is statically linked" 'a script for a script' "$happy_run" "$work/by-script"
script by-env '#!/usr/bin/env static'
warned "'$work/static' is statically linked" 'a script through env' env PATH="$work:$PATH" "$happy_run" "$work/by-env"
script by-env-s '#!/usr/bin/env -S -u C A=b static -x'
warned "'$work/static' is statically linked" 'a script through env -S' env PATH="$work:$PATH" "$happy_run" "$work/by-env-s"
script by-env-joined '#!/usr/bin/env -Sstatic'
warned "'$work/static' is statically linked" 'a script through env -Sname' env PATH="$work:$PATH" "$happy_run" "$work/by-env-joined"
script by-shell '#!/bin/sh
echo ran'
helped 'a shell script' "$happy_run" "$work/by-shell"
script no-interpreter 'echo ran'
helped 'a script without #!' "$happy_run" "$work/no-interpreter"
script empty-interpreter '#!'
verdict 'a script for nothing' '' "$("$happy_run" --check "$work/empty-interpreter" 2>&1 >/dev/null)"
script loop "#!$work/loop"
verdict 'a script for itself' 0 "$(timeout 5 "$happy_run" --check "$work/loop" >/dev/null 2>&1; echo $?)"
verdict '--check tells the chain' "program   $work/by-script: a script
program   $work/by-static: a script
program   $work/static: statically linked" "$("$happy_run" --check "$work/by-script" | grep ^program)"
: >"$work/empty"
chmod +x "$work/empty"
verdict 'an empty file' '' "$("$happy_run" "$work/empty" 2>&1)"
head -c 20 "$work/dynamic" >"$work/cut"
chmod +x "$work/cut"
verdict 'a header that is cut off' '' "$("$happy_run" --check "$work/cut" 2>&1 >/dev/null)"

# ---- found as execvp() finds it, and with few tools

mkdir "$work/first" "$work/second"
cp "$work/static" "$work/first/which"
chmod -x "$work/first/which"
cp "$work/dynamic" "$work/second/which"
helped 'the first in PATH that can be executed' env PATH="$work/first:$work/second:$PATH" "$happy_run" which
verdict 'an empty entry of PATH is this folder' ran "$(cd "$work/second" && PATH="/nonexistent::$PATH" "$happy_run" which 2>&1)"
ln -s "$(command -v dash || command -v sh)" "$work/first/sh"
verdict 'without od, dd and grep' ran "$(PATH="$work/second" "$happy_run" which 2>&1)"

count_verdicts
