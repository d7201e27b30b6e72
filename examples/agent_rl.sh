#!/bin/sh
# Reinforcement learning of an agent that speaks OpenAI's API (agent_rl.py).
#
#   sh examples/agent_rl.sh BUILD_DIR DIRECTORY [STEPS]
#
# DIRECTORY is the folder of the run; the same command resumes it. Without
# TINKER_BASE_URL and TINKER_API_KEY the model is trained on this machine.
exec "${1:?BUILD_DIR is missing}/src/tools/tnk/tnk" rl --environment "python3 '$(dirname "$0")/agent_rl.py'" --run "${2:?DIRECTORY is missing}" --steps "${3:-5}" \
  --model tnk/byte-lm ${TINKER_BASE_URL:+--base-url} "${TINKER_BASE_URL:---local}" \
  --groups 2 --group-size 12 --learning-rate 0.03 --advantages normalized
