#!/bin/sh
# Install Debian's Chromium for the tests of pages, where that can be done: as root, with apt-get, and when it is not
# there. Tests that need it are skipped without it, so nothing here ever fails a build.
set -u
for program in chromium chromium-browser google-chrome; do
  command -v "$program" >/dev/null 2>&1 && exit 0
done
command -v apt-get >/dev/null 2>&1 || exit 0
[ "$(id -u)" = 0 ] || exit 0
export DEBIAN_FRONTEND=noninteractive
# Without a font letters are empty boxes.
{ apt-get -qq update && apt-get -qq install --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 ||
  echo "Chromium could not be installed; its tests are skipped" >&2
exit 0
