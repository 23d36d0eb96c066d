# debian.sh has what scripts share that install Debian's packages. They source it.

# install_packages installs Debian packages, as root. Their services must not start, neither now nor
# at the next boot. It fails, and says why, where it cannot ensure that. It is a subshell, with its
# own clean-up.
install_packages() (
  command -v apt-get >/dev/null && ((EUID == 0)) ||
    { log "cannot install $*: that takes root and apt-get"; return 1; }
  local policy=/usr/sbin/policy-rc.d ours='' status=0
  if [[ -e $policy ]]; then
    # The machine has its own policy, which must not be changed: 101 forbids the start.
    "$policy" "$1" start >/dev/null 2>&1 || status=$?
    ((status == 101)) || { log "not installing $*: $policy would let services start"; return 1; }
  else
    ours=$policy
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  log "installing $*"
  status=0
  (
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # ask nothing
    apt-get -qq -o Acquire::Retries=3 update || true # an old list may still do
    apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"
  ) >&2 || status=1
  [[ -z $ours ]] || rm -f "$ours"
  if ((status == 0)) && command -v systemctl >/dev/null; then
    local service
    for service in redis-server postgresql docker; do # only those that were just installed
      [[ " $* " != *" $service"* ]] || systemctl --quiet disable "$service" >&2 || true
    done
  fi
  return "$status"
)
