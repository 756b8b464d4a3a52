# Sourced by run_experiment and run_tests: installs what is missing, configures where needed, builds.
#   build PRESET [TARGET...]   from any directory; quiet unless something is to be said. Ends the script on failure.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*" >&2; }

#   install_packages NAME      those that setup/NAME.txt lists.
# Installs missing packages where that is wanted (wants_install), or says how and stops with 2. A copy of the list in
# build/ remembers that all were there, so that later calls need not ask the package manager.
install_packages() {
  local list=$root/setup/$1.txt stamp=$root/build/.$1 wanted missing=() package install as_root sudo
  cmp -s "$list" "$stamp" && return
  if ! command -v dpkg-query >/dev/null; then
    say "This is no Debian; install what setup/$1.txt names, then: cp setup/$1.txt build/.$1"
    exit 2
  fi
  mapfile -t wanted < <(sed -E '/^(#|$)/d; s/[[:space:]].*//' "$list")
  for package in "${wanted[@]}"; do
    # shellcheck disable=SC2016  # ${Status} is dpkg's
    [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *" installed" ]] || missing+=("$package")
  done
  if ((${#missing[@]})); then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    say "Missing packages: ${missing[*]}"
    if ((EUID == 0)); then
      as_root=() sudo=
    else
      as_root=(sudo) sudo="sudo "
      if [[ ! -t 0 ]]; then as_root+=(-n); fi  # there is nobody to give a password
    fi
    if ! wants_install || ! command -v "${as_root[0]:-sh}" >/dev/null; then
      say "Not installed. Run this, then try again; or let that be done from here, with SYNCOPATE_INSTALL=yes:"
      say "  ${sudo}apt-get update && $sudo$install"
      exit 2
    fi
    say "Installing them: $sudo$install"
    quietly "$root/build/install.log" "${as_root[@]}" sh -c "apt-get update && DEBIAN_FRONTEND=noninteractive $install" ||
      exit 2
  fi
  # Where that cannot be written, somebody else has built, and the next call asks again.
  { mkdir -p "$root/build" && cp "$list" "$stamp"; } 2>/dev/null || true
}

# Whether packages may be installed. SYNCOPATE_INSTALL says so, yes or no; without it, CI means yes, and a person at a
# terminal is asked. Where there is nobody to ask, root installs, as in a container that has nobody else; sudo does not.
wants_install() {
  local answer=${SYNCOPATE_INSTALL:-}
  if [[ -z $answer && ${CI:-} == true ]]; then answer=yes; fi
  if [[ -z $answer && -t 0 && -t 2 ]]; then
    read -r -p "Install them now$( ((EUID == 0)) || echo " with sudo")? [y/N] " answer || return
  elif [[ -z $answer ]]; then
    ((EUID == 0)) && answer=yes
  fi
  [[ $answer =~ ^[Yy]([Ee][Ss])?$ ]]
}

# Runs a command with its output in a file, and shows the output's end only if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 && return
  tail -n 60 "$log" >&2
  say "The command failed: $* (whole output: $log)"
  return 1
}

# Shows how far a build of Ninja's has come, of which it reads what the build prints: on a terminal one line that is
# written anew, "[ 63/120] building release, about 40 s left: common/codec/int8.cc"; elsewhere a line every 20 s. Nothing
# where there is nothing to build.
show_progress() {
  local what=$1 line began=$SECONDS shown=$SECONDS left eta file columns=80 said=
  if [[ -t 2 ]]; then columns=$(tput cols 2>/dev/null || echo 80); fi
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) && $line != *Re-checking* ]] || continue
    local finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} step=${BASH_REMATCH[3]}
    file=${step##* } file=${file#*.dir/} file=${file%.o}
    left=
    if ((finished >= 5 && finished < all)); then
      eta=$(((SECONDS - began) * (all - finished) / finished))
      if ((eta >= 60)); then left=", about $((eta / 60)) min $((eta % 60)) s left"; else left=", about $eta s left"; fi
    fi
    if [[ -t 2 ]]; then
      line=$(printf '[%*d/%d] building %s%s: %s' ${#all} "$finished" "$all" "$what" "$left" "$file")
      printf '\r\033[K%s' "${line:0:columns-1}" >&2
    elif [[ -z $said ]] || ((SECONDS - shown >= 20)); then
      say "$(printf '[%*d/%d] building %s%s' ${#all} "$finished" "$all" "$what" "$left")"
      shown=$SECONDS
    fi
    said=yes
  done
  if [[ -n $said && -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# Whether the targets are there and nothing has changed since they were built. Writes nothing: under another name the
# file of rules is not brought up to date first, as its globs always ask for.
is_built() {
  [[ -f $1/build.ninja && $(ninja -n -C "$1" -f /dev/stdin "${@:2}" <"$1/build.ninja" 2>/dev/null) == *"no work to do"* ]]
}

#   need_not_build FOLDER TARGET...
# Whether a build that cannot be written, of another user or on a disk that is read-only, is as good as it is. If it is
# not, says so and stops with 2.
need_not_build() {
  local folder=$1 place=$1
  while [[ ! -e $place ]]; do place=$(dirname -- "$place"); done
  [[ -w $place && (! -e $folder/.ninja_log || -w $folder/.ninja_log) ]] && return 1
  is_built "$@" && return
  say "$folder: what is built there is missing or older than the sources, and you ($(id -un)) cannot write there: $place is of $(stat -c %U -- "$place")."
  say "Have $(stat -c %U -- "$root") build it, by any call of run_experiment, or make a checkout of your own: git clone $root"
  exit 2
}

build() {
  local preset=$1 folder=$root/build/$1 targets=("${@:2}") began
  if need_not_build "$folder" "${targets[@]}"; then return; fi
  install_packages packages
  if [[ ! -f $folder/build.ninja ]]; then
    say "Configuring $preset"
    (cd "$root" && quietly "$folder/configure.log" cmake --preset "$preset") || exit 1
    sed -n 's/^-- GPU:/GPU:/p' "$folder/configure.log" >&2
  fi
  # Ninja itself, not cmake --build: with nothing to do it takes a moment.
  began=$SECONDS
  ninja -C "$folder" "${targets[@]:-all}" 2>&1 | tee "$folder/build.log" | show_progress "$preset" || {
    # Ctrl-C ends all three of them.
    if [[ " ${PIPESTATUS[*]} " == *" 130 "* ]]; then
      say "interrupted: what is built is kept, and the next call goes on"
      exit 130
    fi
    grep -av '^\[' "$folder/build.log" | tail -n 60 >&2
    say "The build failed (whole output: $folder/build.log)"
    exit 1
  }
  if ((SECONDS - began > 1)); then say "Built $preset in $((SECONDS - began)) s"; fi
}
