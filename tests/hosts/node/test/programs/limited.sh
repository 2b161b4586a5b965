# Runs a program with so many file descriptors at most.
ulimit -n "$1" && shift && exec "$@"
