#!/bin/sh
# A launcher as `conda run` is: a shell that sets up an environment and starts the program.
export CONDA_PREFIX=/nowhere
"$@"
status=$?
exit $status
