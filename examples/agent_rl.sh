#!/bin/sh
# Reinforcement learning of an agent that speaks OpenAI's API: it plays by way of
# tnk gateway, which records every token (agent_rl.py); what was recorded is
# learned from (agent_rl.c); the gateway samples from the new weights; and again.
#
#   sh examples/agent_rl.sh BUILD_DIR DIRECTORY [ITERATIONS]
#
# DIRECTORY is made, and keeps the record and the run. Without TINKER_BASE_URL
# and TINKER_API_KEY a local service is started, which needs no account.
set -eu
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
here=$(dirname "$0")
tnk=$1/src/tools/tnk/tnk
dir=$2
mkdir "$dir"
pids=
trap 'kill $pids 2>/dev/null; wait' EXIT
# serve NAME COMMAND: run it until the end; `url` is where it listens.
serve() {
  mkfifo "$dir/$1.address"
  "$tnk" "$@" --port 0 >"$dir/$1.address" &
  pids="$pids $!"
  read -r _ _ url <"$dir/$1.address" # "listening on URL"
  rm "$dir/$1.address"
}

if [ -z "${TINKER_BASE_URL:-}" ]; then
  serve local --data "$dir/service"
  export TINKER_BASE_URL="$url" TINKER_API_KEY=tml-local
fi
serve gateway --model tnk/byte-lm --record "$dir/record.jsonl"
weights=
for i in $(seq "${3:-6}"); do
  python3 "$here/agent_rl.py" "$url" "$i" "$dir/datums.jsonl" $weights
  weights=$("$1/examples/agent_rl" "$dir/run" <"$dir/datums.jsonl")
done
echo "saved $weights"
