"""Training input from a simulated cloud: what is sampled, by which loaders, and what that took.

Used by the benchmark `torch`. A workload is an array and a table of boxes (`workloads`); a system is
a loader of batches (`systems`, ours and those of others); each run is a process of its own
(`epochs`) that is asked for one epoch after another (`runs`), and the goals follow (`goals`).

Invariant: in every complete epoch each sample came exactly once with the right bytes, or the
benchmark ends.
"""
