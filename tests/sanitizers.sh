#!/usr/bin/env bash
# Runs the tests that reach the kernel against one built with GCC's address, undefined and thread
# sanitizers. usage: tests/sanitizers.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
export PATH=$PWD/.venv/bin:$PATH CC=gcc CXX=g++ DRAFTPROOF_REQUIRE_NATIVE=1 OPENBLAS_NUM_THREADS=1

# An environment of its own that sees .venv's packages, but not .venv's editable draftproof:
# the import hook of an editable install would win over any other copy.
build() {
    local prefix=$1 sanitizers=$2
    rm -rf "$prefix"
    "$python" -m venv --without-pip "$prefix"
    local site
    site=$("$prefix/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/packages.pth"
    "$python" -m pip install -qq --no-build-isolation --no-deps --target "$site" \
        --config-settings cmake.build-type=Debug \
        --config-settings "cmake.define.DRAFTPROOF_SANITIZE=$sanitizers" .
}

# A sanitizer's runtime must be loaded before Python, and libstdc++ with it, or it misses throws.
preload() {
    local library paths=
    for library in "$@" libstdc++.so; do
        paths+=${paths:+:}$(realpath "$("$CXX" -print-file-name="$library")")
    done
    echo "$paths"
}

# A sanitizer writes to the process' own stderr, which pytest must leave alone.
tests=(-m pytest -p no:cacheprovider --capture=sys --hypothesis-profile=ci)
tests+=(tests/test_*.py tests/{kernels,logits,trees} "$@")

echo "== address and undefined behaviour =="
build build/asan address,undefined
LD_PRELOAD=$(preload libasan.so libubsan.so) \
    ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:abort_on_error=1 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    build/asan/bin/python "${tests[@]}"

# Without address randomisation, for GCC's older runtimes cannot map their shadow everywhere.
# Races inside Python and NumPy, which are not instrumented, are not ours to report.
echo "== threads =="
build build/tsan thread
LD_PRELOAD=$(preload libtsan.so) \
    TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1:die_after_fork=0:history_size=7 \
    setarch "$(uname -m)" --addr-no-randomize build/tsan/bin/python "${tests[@]}"
