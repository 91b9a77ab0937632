// One sequence of the campaign for stores in a bucket.
//
// A machine changes files, syncs, recompresses, collects garbage and ships its commits to a bucket
// in memory, over a network that loses, doubles and delays requests (bucket_network.h). In between
//   - the process is killed, or the power of its disk is cut;
//   - the machine is lost with its disk, and the store is restored to an empty one;
//   - another machine takes over while the first one goes on, and does not know it yet.
// Each of these is a point. After it the store must open, and its files must be those after some
// step: no earlier one than the last that was synced, or, if the disk is lost, than the last one of
// which the lag had said that the bucket has it. With sync=bucket, that is the last one that was
// acknowledged. A machine that was fenced must have acknowledged nothing that the other one lacks,
// and must be refused when it is opened again. No two writers may put log objects of one epoch.
// After some points, fsck reads all data.
//
// One sequence in eight has threads that ship and upload; the others are deterministic.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace siltfs::testing {

struct BucketPoint {
  std::string place;
  std::string problem;     // empty: the state was legal
  bool disk_lost = false;  // or taken over
};

// Reports each point to `verdict`. The sequence ends after `limit` points, or at a problem.
void RunBucketSequence(uint64_t seed, uint64_t limit,
                       const std::function<void(const BucketPoint&)>& verdict);

}  // namespace siltfs::testing
