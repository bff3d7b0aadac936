"""What happens when power, disks, clocks, other processes and files misbehave: `make fire`."""
