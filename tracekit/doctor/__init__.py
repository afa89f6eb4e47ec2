"""Whether this machine can profile: one question a file, each answered with a `Check`."""
