"""Run every benchmark and print its ratios: `make bench`."""

from benchmarks import encoding, learning, reduction

for benchmark in (reduction, learning, encoding):
    for name, ratio in benchmark.run():
        print(f"{name:<76} {ratio:6.2f}", flush=True)
