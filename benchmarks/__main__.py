"""Run every benchmark and print its ratios: `make bench`."""

from benchmarks import reduction

for name, ratio in reduction.run():
    print(f"{name:<72} {ratio:6.2f}")
