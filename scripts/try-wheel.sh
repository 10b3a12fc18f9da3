#!/usr/bin/env bash
# The wheel in dist/, tried where people are; see wheel.sh --try. Clean systems are made once, by debootstrap or of the archive that fresh.sh keeps, and stay in
# ~/.cache/millpond/systems.
#   MINORS="9 13"   of the Pythons that are here only these; SUITES="trixie forky" of the systems
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
wheel=$(ls "$root"/dist/millpond-*.whl 2>/dev/null) || { echo "wheel: there is none in dist/; make wheel makes it" >&2; exit 1; }
# What is mounted below is seen by this run alone, and gone with it, however it ends.
if [ "$(id -u)" = 0 ] && [ -z "${TRY_INSIDE:-}" ]; then exec env TRY_INSIDE=1 unshare --mount --propagation private "$0"; fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/millpond
systems=$cache/systems
scratch=$(mktemp -d)
passed=0 failed=0 missing=()
trap 'rm -rf --one-file-system "$scratch"' EXIT

# told NAME COMMAND...: runs it, prints one line, keeps count.
told() {
  local name=$1 log=$scratch/log status=0
  shift
  set +e # in a condition bash would go on after a failure within the function
  (set -e && "$@") >"$log" 2>&1
  status=$?
  set -e
  if [ "$status" = 0 ]; then
    passed=$((passed + 1)) && printf '  ok      %-44s %s\n' "$name" "$(tail -n 1 "$log")"
  else
    failed=$((failed + 1)) && printf '  FAILED  %s\n' "$name" && sed 's/^/          /' "$log" | tail -n 40
  fi
}

# not_tried WHAT: named at once and in the last line.
not_tried() {
  missing+=("$1")
  printf '  not tried  %s\n' "$1"
}

# in_environment PYTHON: the wheel and pytest in a new environment, in a folder with a space; then all that an installed package must do.
in_environment() {
  local env="$scratch/environments of $(basename "$1")/one"
  "$1" -m venv "$env"
  "$env/bin/python" -m pip install --disable-pip-version-check -q "$wheel" pytest
  MILLPOND_ENV=$env "$1" tests/install/package_test.py
  "$env/bin/python" -m pip uninstall -q -y millpond
  [ ! -e "$env/bin/millpond" ] && [ -z "$(find "$env" -name '*millpond*')" ]
}

# inside FOLDER COMMAND...: in the system there, with this machine's certificates and settings of pip.
inside() {
  local system=$1
  shift
  chroot "$system" env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive TF_CPP_MIN_LOG_LEVEL=3 $(env | grep -E '^(PIP_[A-Z_]*(CERT|INDEX_URL|TIMEOUT)|SSL_CERT_FILE)=[^ ]*$') "$@"
}

# make_system SUITE PACKAGE...: a clean system with these packages and no compiler.
make_system() {
  local suite=$1 system=$systems/$1 script=/usr/share/debootstrap/scripts/$1 mirror place
  shift
  if [ ! -e "$system/.millpond-ready" ]; then
    rm -rf --one-file-system "$system" && mkdir -p "$system"
    if [ -f "$cache/fresh/$suite.tar" ]; then
      tar -C "$system" -xf "$cache/fresh/$suite.tar"
    else
      mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep '/debian/\?$' | head -n 1)
      [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # a suite that is newer than this debootstrap
      debootstrap --variant=minbase "$suite" "$system" "$mirror" "$script"
    fi
    touch "$system/.millpond-ready"
  fi
  for place in proc dev dev/shm dev/pts; do mount --bind "/$place" "$system/$place"; done
  cp /etc/resolv.conf "$system/etc/resolv.conf"
  inside "$system" apt-get -o Acquire::Check-Valid-Until=false update -qq
  inside "$system" apt-get install -y -qq --no-install-recommends ca-certificates "$@" >/dev/null 2>&1
  cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
  if inside "$system" sh -c 'command -v cc || command -v gcc || command -v c++'; then return 1; fi
  rm -rf "$system/trial" && mkdir "$system/trial"
  cp "$wheel" tests/install/package_test.py examples/leaky_training.py tests/cases/programs/topic_callback.py tests/cases/programs/torch_validate.py "$system/trial"
}

# in_system SUITE PYTHON: as in_environment.
in_system() {
  local system=$systems/$1 python=$2
  inside "$system" "$python" -m venv "/trial/env of $python"
  inside "$system" "/trial/env of $python/bin/python" -m pip install --disable-pip-version-check -q "/trial/$(basename "$wheel")" pytest
  inside "$system" env "MILLPOND_ENV=/trial/env of $python" "$python" /trial/package_test.py
}

# answer JSON: verdict, cause and line, in a line.
answer() {
  python3 - "$1" <<'PYTHON'
import json, os, sys
found = json.load(open(sys.argv[1]))
first = (found["findings"] or [{}])[0]
blame = first.get("blame") or {}
print(found["verdict"], first.get("cause"), os.path.basename(blame.get("file") or "-"), blame.get("line"))
PYTHON
}

# bring_keras FOLDER: into /peers of the system there, once.
bring_keras() {
  inside "$1" /peers/bin/python -c 'import keras' 2>/dev/null && return
  inside "$1" python3 -m venv --clear /peers
  inside "$1" /peers/bin/python -m pip install --disable-pip-version-check -q --only-binary :all: $(grep -E '^(tensorflow-cpu|keras)==' requirements-peers.txt)
}

# same_answer PYTHON_HERE PYTHON_THERE PROGRAM: the built tree here and the wheel in the clean system say the same of a program: that it leaks, and at which line.
same_answer() {
  local there=$systems/trixie name=${3##*/}
  (cd "$scratch" && TF_CPP_MIN_LOG_LEVEL=3 "$root/build/bin/millpond" watch --force -o here.pond --json here.json -- "$1" "$root/$3")
  inside "$there" sh -c "cd /trial && '/trial/env of python3/bin/millpond' watch --force -o there.pond --json there.json -- '$2' '$name'"
  local ours theirs
  ours=$(answer "$scratch/here.json") theirs=$(answer "$there/trial/there.json")
  echo "here: $ours; there: $theirs"
  [ "$ours" = "$theirs" ] && [[ $ours == "leak "*" "*.py" "[0-9]* ]]
}

echo "wheel: $(basename "$wheel") in environments of its own"
for minor in ${MINORS-9 10 11 12 13 14 15}; do
  before=$((passed + failed))
  for python in "$HOME"/.pyenv/versions/3.$minor.*/bin/python3.$minor "$(command -v "python3.$minor" || true)"; do
    "$python" -c 'import ensurepip' 2>/dev/null || continue # a name without a Python behind it
    told "$("$python" --version)" in_environment "$python"
    break
  done
  [ "$before" != $((passed + failed)) ] || not_tried "Python 3.$minor in an environment: it is not here"
done

if [ "$(id -u)" != 0 ]; then
  not_tried "clean systems (${SUITES-trixie forky}): only root can make them"
elif ! command -v debootstrap >/dev/null; then
  not_tried "clean systems (${SUITES-trixie forky}): debootstrap is not installed"
else
  for suite in ${SUITES-trixie forky}; do
    echo "wheel: in a clean $suite without a compiler"
    case $suite in
      trixie) told "system" make_system trixie python3 python3-venv python3-torch ;;
      *) told "system" make_system "$suite" $(for minor in 14 15; do echo "python3.$minor" "python3.$minor-venv"; done) ;;
    esac
    for python in $(inside "$systems/$suite" sh -c 'cd /usr/bin && ls python3.?? python3 2>/dev/null'); do
      inside "$systems/$suite" "$python" -c 'import ensurepip' 2>/dev/null || continue
      told "$suite, $(inside "$systems/$suite" "$python" --version)" in_system "$suite" "$python"
    done
    [ "$suite" = trixie ] || continue
    if [ ! -x build/bin/millpond ]; then
      not_tried "the answers beside those of the built tree: make builds it"
      continue
    fi
    echo "wheel: its answer there beside that of build/bin/millpond here"
    told "a plain program" same_answer python3 python3 examples/leaky_training.py
    if [ ! -e /usr/lib/python3/dist-packages/torch ]; then not_tried "PyTorch: no python3-torch here"; else told "PyTorch" same_answer /usr/bin/python3 /usr/bin/python3 tests/cases/programs/torch_validate.py; fi
    if [ ! -x .venv-peers/bin/python ]; then
      not_tried "Keras: no .venv-peers, which make peers makes"
    else
      told "Keras comes from the registry" bring_keras "$systems/trixie"
      told "Keras" same_answer "$root/.venv-peers/bin/python" /peers/bin/python tests/cases/programs/topic_callback.py
    fi
  done
fi
words=$(printf '; %s' "${missing[@]}")
echo "wheel: $passed passed, $failed failed, ${#missing[@]} not tried${missing[*]:+ (${words:2})}"
[ "$failed" = 0 ]
