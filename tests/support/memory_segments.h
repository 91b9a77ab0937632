// Lets tests of whole stores run with sealed segments in memory (store/segment). Without
// SILTFS_TEST_SEGMENT_STORE=memory in the environment, all segments are files in the store's
// directory, and the functions below work on those files.
//
// A simulated device has its own segments in memory, and any Env that wraps the device leads to
// them. So tests must use the functions below to fork a device or to replay a trace.
//
// Thread-safety: every call from any thread; one test program has one set of devices.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/env/sim_env.h"
#include "store/segment/memory_segment_store.h"
#include "store/segment/segment_store.h"

namespace siltfs::testing {

bool KeepsSegmentsInMemory();
// With SILTFS_TEST_SEGMENT_STORE=bucket: sealed segments are in a bucket in memory, with a small
// cache on the device (bucket_device.h).
bool KeepsSegmentsInBucket();

// The value of `segments` in the options of file systems, checks and repairs on this device: null,
// or a store in memory. If `env` is a FaultEnv, it notes the reads of segments like those of files.
SegmentStore* SealedSegments(Env& env);
// The segments in memory of this device, for faults; null if there are none.
MemorySegmentStore* MemorySegments(Env& env);
// All segments of a store on this device, as a file system sees them.
std::unique_ptr<SegmentStore> SegmentsOf(Env& env, const std::string& store);
// Forgets the segments in memory of an earlier device. Call before a store is made at this path.
void ForgetSegments(Env& env, const std::string& store);

// SimEnv::Fork, with the segments in memory.
std::unique_ptr<SimEnv> ForkDevice(SimEnv& device);
// SimEnv::ForkAndTrace, with the segments in memory.
std::unique_ptr<SimEnv> ForkAndTraceDevice(SimEnv& device);
// SimEnv::Replay, with the changes of segments in memory. The trace is that of a device of this
// program.
Status ReplayRecord(SimEnv& device, const SimRecord& record);

// The content of a segment.
std::string SegmentContent(Env& env, const std::string& store, SegmentId id);
// Changes the content of a segment in its place, durably, as damage would.
void ChangeSegment(Env& env, const std::string& store, SegmentId id,
                   const std::function<void(std::string& content)>& change);
// Inverts a bit of the segment with this name (SegmentStore::NameOf), or of any other file.
void FlipStoredByte(Env& env, const std::string& name, uint64_t offset);
// Lets the next replacement of a segment on this device fail (kIoError).
void FailReplacement(SimEnv& device);
// Removes a segment, as damage would.
void LoseSegment(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs::testing
