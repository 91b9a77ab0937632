"""The modules of tools/bench/compare-peers."""
