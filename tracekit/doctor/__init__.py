"""Whether this machine can profile. Each check answers one question with a `Check`."""
