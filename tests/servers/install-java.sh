#!/bin/sh
# Install Debian's Java for the tests of Spark, where that can be done: as root, with apt-get, and when it is not there.
# Tests that need it are skipped without it, so nothing here ever fails a build.
set -u
java=java
[ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 17 ] && exit 0
command -v apt-get >/dev/null 2>&1 || exit 0
[ "$(id -u)" = 0 ] || exit 0
export DEBIAN_FRONTEND=noninteractive
{ apt-get -qq update && apt-get -qq install --no-install-recommends openjdk-17-jre-headless; } >/dev/null 2>&1 ||
  echo "Java could not be installed; tests of Spark are skipped" >&2
exit 0
