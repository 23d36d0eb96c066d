# debian.sh: what the scripts beside it share. They source it.

# install_packages installs Debian packages, as root. Their services must neither start now nor at the next boot: nobody
# asked for one. Fails, and says why, where that cannot be had. It is a subshell, which has a clean-up of its own.
install_packages() (
  command -v apt-get >/dev/null && ((EUID == 0)) || { log "cannot install $*: that takes root and apt-get"; return 1; }
  local policy=/usr/sbin/policy-rc.d ours='' status=0
  if [[ -e $policy ]]; then
    # The machine has a policy of its own, which is not ours to change: 101 forbids the start.
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
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # nobody is there to be asked, nor to be told
    apt-get -qq -o Acquire::Retries=3 update || true # an old list may still do
    apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"
  ) >&2 || status=1
  [[ -z $ours ]] || rm -f "$ours"
  if ((status == 0)) && command -v systemctl >/dev/null; then
    local service
    for service in redis-server docker; do # of those, only the ones that were not there a moment ago
      [[ " $* " != *" $service"* ]] || systemctl --quiet disable "$service" >&2 || true
    done
  fi
  return "$status"
)
