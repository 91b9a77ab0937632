"""What tools/bench/compare-peers is made of."""
