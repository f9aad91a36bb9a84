#!/bin/sh
# replay.sh HARNESS CORPUS: each check on the inputs that its fuzzer kept.
set -e
for check in "$2"/*/; do "$1" replay "$(basename "$check")" "$check"*; done
