#!/usr/bin/env bash
# apt_install.sh PACKAGE...: install the first of these Debian packages that is available.
# Fails without any change if there is no apt-get or the user lacks permission (neither root nor sudo without a password).
set -euo pipefail
command -v apt-get >/dev/null || exit 1

as_root=
if [ "$(id -u)" != 0 ]; then
    { command -v sudo >/dev/null && sudo -n true 2>/dev/null; } || exit 1
    as_root="sudo -n"
fi

offered() {
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

first_offered() {
    for package in "$@"; do
        if offered "$package"; then
            echo "$package"
            return
        fi
    done
    return 1
}

package=$(first_offered "$@") || {
    $as_root apt-get update -qq >&2
    package=$(first_offered "$@") || exit 1
}
echo "Installing the system package $package …" >&2
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "$package" >&2
