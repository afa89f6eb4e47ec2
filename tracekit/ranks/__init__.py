"""Many ranks of one job: which collectives belong together, who waited for whom, and why. Digests -> Ranks."""
