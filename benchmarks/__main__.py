"""Run every benchmark and print its ratios: `make bench`."""

from benchmarks import learning, reduction

for benchmark in (reduction, learning):
    for name, ratio in benchmark.run():
        print(f"{name:<76} {ratio:6.2f}", flush=True)
