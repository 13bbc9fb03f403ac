#!/usr/bin/env bash
# java_home.sh: print the home of a Java runtime that Spark 4 can use (17 or newer).
# Checks $JAVA_HOME, java on the PATH and Debian's folder of runtimes, in this order; otherwise installs Debian's package if permitted.
set -euo pipefail
oldest=17

# Prints the home of the runtime whose launcher is $1, if it is new enough.
home_of() {
    local settings version
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = \(1\.\)\{0,1\}//p' <<<"$settings")
    [ "${version:-0}" -ge "$oldest" ] 2>/dev/null || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

find_runtime() {
    for launcher in "${JAVA_HOME:-}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$launcher" ] && home_of "$launcher"; then
            return
        fi
    done
    return 1
}

find_runtime && exit
if "$(dirname "$0")/apt_install.sh" openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; then
    find_runtime && exit
fi
echo "Spark needs a Java runtime, $oldest or newer, and none was found: install one (Debian and Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME." >&2
exit 1
