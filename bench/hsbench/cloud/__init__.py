"""Query streams against a simulated cloud: what they ask, who answers, what that takes and costs.

Used by the benchmarks `cloud`, `scale` and the figures. Between them and the processes: boxes are
drawn (`boxes`), arrays laid out (`layouts`) and given to the contenders (`contenders`), rounds are
timed and metered (`rounds`), and the bill (`bill`) and the floor (`floor`) computed.

Invariant: all contenders answer the same boxes in the same round, and an answer that is wrong ends
the benchmark.
"""
