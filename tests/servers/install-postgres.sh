#!/bin/sh
# Install Debian's PostgreSQL for the tests, where that can be done: as root, with apt-get, and when it is not there.
# Tests that need it are skipped without it, so nothing here ever fails a build.
set -u
for program in /usr/lib/postgresql/*/bin/initdb; do
  [ -x "$program" ] && exit 0
done
command -v initdb >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || exit 0
[ "$(id -u)" = 0 ] || exit 0
export DEBIAN_FRONTEND=noninteractive
# The package would start a server of its own; the tests start theirs.
mkdir -p /etc/postgresql-common 2>/dev/null && [ -e /etc/postgresql-common/createcluster.conf ] ||
  echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf 2>/dev/null
{ apt-get -qq update && apt-get -qq install --no-install-recommends postgresql; } >/dev/null 2>&1 ||
  echo "PostgreSQL could not be installed; its tests are skipped" >&2
exit 0
