#!/usr/bin/env bash
# The README's two commands on a system that has nothing of ours: fresh.sh SUITE, for example trixie.
# A clean Debian is made by debootstrap (once, then kept as an archive), the working tree is copied into it, and `make demo` and `make test` run
# there. Whatever they need they must bring themselves: this is the proof that set-up works. Needs root.
#   FRESH_CXX=g++-13      the compiler, a Debian package of that name too (clang: clang++)
#   FRESH_USER=1          as a user who is not root; the compiler, make and Python are there then, as root would have installed them
#   FRESH_RUN="make demo" other commands, one a line
#   FRESH_MIRROR=URL      where packages come from; otherwise where this system has its own from
#   FRESH_CACHE=FOLDER    where archives and downloads are kept (~/.cache/millpond/fresh)
#   FRESH_QUICK=1         objects that an earlier run compiled for this suite are taken from its ccache; the times are not those of a new user then
#   FRESH_KEEP=1          the system stays when it is done, and its folder is told
#   FRESH_AGAIN=FOLDER    such a folder: the working tree is copied into it anew, and only what changed is built
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?fresh.sh SUITE, for example bookworm, trixie or forky}
cache=${FRESH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millpond/fresh}
commands=${FRESH_RUN:-$'make demo\nmake test'}
say() { printf 'fresh: %s\n' "$*"; }
fail() { printf 'fresh: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "debootstrap and chroot need root."
command -v debootstrap >/dev/null || { say "installing debootstrap"; apt-get install -y --no-install-recommends debootstrap >/dev/null; }
mirror=${FRESH_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1)}
[ -n "$mirror" ] || fail "no Debian mirror is known here; name one with FRESH_MIRROR."

# Everything below is mounted in a name space of this run alone, so that nothing is left of it, however it ends.
if [ -z "${FRESH_INSIDE:-}" ]; then exec env FRESH_INSIDE=1 FRESH_MIRROR="$mirror" unshare --mount --pid --fork --kill-child "$0" "$@"; fi

mkdir -p "$cache/pip" "$cache/npm" "$cache/$suite-ccache" "$cache/$suite-packages/partial"
base=$cache/$suite.tar
if [ ! -f "$base" ]; then
  say "making a clean $suite (kept in $base)"
  made=$(mktemp -d /var/tmp/millpond-base.XXXXXX)
  trap 'rm -rf "$made"' EXIT
  script=/usr/share/debootstrap/scripts/$suite
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # a suite that is newer than this debootstrap
  debootstrap --variant=minbase "$suite" "$made" "$mirror" "$script" >"$cache/$suite.log" 2>&1 || fail "debootstrap failed: $(tail -n 1 "$cache/$suite.log")"
  rm -f "$made"/var/cache/apt/archives/*.deb
  tar -C "$made" -cf "$base.part" . && mv "$base.part" "$base"
  rm -rf "$made" && trap - EXIT
fi

again=${FRESH_AGAIN:-}
[ -z "$again" ] || [ -d "$again/dev" ] || fail "$again is not a system that FRESH_KEEP=1 left."
root=${again:-$(mktemp -d "${FRESH_FOLDER:-/var/tmp}/millpond-$suite.XXXXXX")}
mount --make-rprivate /
clean() {
  umount -R "$root" 2>/dev/null || true
  if [ -n "${FRESH_KEEP:-}$again" ]; then say "it stays in $root"; else rm -rf --one-file-system "$root"; fi
}
trap clean EXIT
mount --bind "$root" "$root"
[ -n "$again" ] || tar -C "$root" -xf "$base"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null zero full random urandom tty; do touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"; done
mkdir "$root/dev/shm" "$root/dev/pts" && mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 pts "$root/dev/pts" && ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd" && ln -s /proc/self/fd/1 "$root/dev/stdout" && ln -s /proc/self/fd/2 "$root/dev/stderr"
mount --bind "$cache/$suite-packages" "$root/var/cache/apt/archives"
rm -f "$root/etc/apt/apt.conf.d/docker-clean"
echo 'Binary::apt::APT::Keep-Downloaded-Packages "true"; Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99fresh"

# How this machine reaches the network: names, certificates, and what pip and npm were told.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb PIP_CACHE_DIR=/cache/pip npm_config_cache=/cache/npm)
while IFS= read -r variable; do
  case $variable in
    *_proxy=* | *_PROXY=* | PIP_INDEX_URL=* | npm_config_registry=* | MILLPOND_*=*) environment+=("$variable") ;;
  esac
done < <(env)
mkdir -p "$root"/cache/{pip,npm,ccache}
for folder in pip npm; do mount --bind "$cache/$folder" "$root/cache/$folder"; done
mount --bind "$cache/$suite-ccache" "$root/cache/ccache"
environment+=(CCACHE_DIR=/cache/ccache)
[ -n "${FRESH_QUICK:-}" ] || environment+=(CCACHE_RECACHE=1) # it is filled, and not asked
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then # not in its own place, where the system's packages would replace it
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/cache/certificates.crt"
  for variable in PIP_CERT SSL_CERT_FILE NODE_EXTRA_CA_CERTS; do environment+=("$variable=/cache/certificates.crt"); done
fi

inside() { chroot "$root" env -i HOME=/root "${environment[@]}" "$@"; }
packages=(make)
if [ -n "${FRESH_USER:-}" ]; then packages+=(g++ python3 python3-venv); fi
case ${FRESH_CXX:-} in
  '') ;;
  clang++) packages+=(clang) environment+=(CC=clang CXX=clang++) ;;
  *) packages+=("$FRESH_CXX") environment+=("CXX=$FRESH_CXX") ;;
esac
if [ -z "$again" ]; then
  inside apt-get update -qq || fail "apt-get update failed in the clean $suite."
  inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>"$cache/$suite.log" || fail "${packages[*]}: $(tail -n 1 "$cache/$suite.log")"
fi

home=/root
if [ -n "${FRESH_USER:-}" ]; then
  [ -n "$again" ] || inside useradd --create-home pond
  home=/home/pond
  chown -R 1000:1000 "$root/cache/pip" "$root/cache/npm" "$root/cache/ccache"
fi
tree=$home/millpond
mkdir -p "$root$tree"
# What is gone from the working tree must not be built there; what was built and fetched stays. Files have the time of this copy then: one that was changed before the last build
# there ended would look older than what was made of it.
if [ -n "$again" ]; then for part in $(git ls-files | cut -d / -f 1 | sort -u); do [ "$part" = web ] || rm -rf "$root$tree/${part:?}"; done; fi
git ls-files -z --cached --others --exclude-standard | tar --null --no-recursion --ignore-failed-read -T - -cf - 2>/dev/null | tar -C "$root$tree" -x${again:+m}f -
if [ -n "${FRESH_USER:-}" ]; then chown -R 1000:1000 "$root$tree"; fi

# minutes SECONDS: in words.
minutes() { echo "$(($1 / 60)) min $(($1 % 60)) s"; }
# count_processor: sets `used` to the seconds, user and system, of all children that ended so far. `times` is asked into a file, because in a pipe or in $( ) it tells of
# that other shell; its second line looks like "1m2.345s 0m3.456s".
count_processor() {
  times >"$root/cache/times"
  used=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$root/cache/times")
}
status=0
summary=()
while IFS= read -r command; do
  say "$suite${FRESH_CXX:+, $FRESH_CXX}${FRESH_USER:+, not root}: $command"
  began=$SECONDS
  count_processor && before=$used
  if [ -n "${FRESH_USER:-}" ]; then
    inside setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=$home bash -c "cd $tree && $command" </dev/null || status=$?
  else
    inside bash -c "cd $tree && $command" </dev/null || status=$?
  fi
  count_processor
  summary+=("$command: $([ $status = 0 ] && echo passed || echo "failed with $status") after $(minutes $((SECONDS - began))), $(minutes $((used - before))) of them on processors")
  [ $status = 0 ] || break
done <<<"$commands"
say "$suite${FRESH_CXX:+, $FRESH_CXX}${FRESH_USER:+, not root}: $(inside sh -c 'g++ -dumpfullversion 2>/dev/null | sed "s/^/g++ /"'), $(inside sh -c 'python3 --version 2>/dev/null'), $(inside sh -c 'cmake --version 2>/dev/null | head -n 1')"
for line in "${summary[@]}"; do say "  $line"; done
exit $status
