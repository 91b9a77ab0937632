// The state shared by a SimEnv and its open files and locks: names, power, armed faults, counters.
// Part of SimEnv (sim_env.h specifies the model).
//
// Every simulated call starts with Begin. A call that changes anything ends with End. The mutex is
// held from Begin until the call returns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/base/random.h"
#include "store/base/thread_annotations.h"
#include "store/env/sim_env.h"
#include "store/env/sim_names.h"

namespace siltfs {

class SimDisk {
 public:
  explicit SimDisk(uint64_t seed) : random(seed) {}

  // Counts the call and fails if it must not proceed. `generation` is the generation of the File or
  // lock that is called.
  Status Begin(SimCall call, std::string_view path, uint64_t generation) SILTFS_REQUIRES(mutex);
  Status Begin(SimCall call, std::string_view path) SILTFS_REQUIRES(mutex) {
    return Begin(call, path, generation_);
  }
  // Ends a mutating call that Begin let proceed. Returns `outcome`, unless the power cut is armed
  // for this call. In that case End cuts the power and fails.
  Status End(Status outcome) SILTFS_REQUIRES(mutex);
  // Whether the power is cut at the current call. If so, the call makes nothing durable.
  bool Cutting() const SILTFS_REQUIRES(mutex) { return cutting_; }
  // Number of bytes that a write must write although Begin has just returned a failure for it
  // (SimFault::bytes_written).
  uint64_t BytesOfFailedWrite() const SILTFS_REQUIRES(mutex) { return bytes_of_failed_write_; }

  // Fails if the power is off, or was cut since `generation`.
  Status CheckPower(uint64_t generation) const SILTFS_REQUIRES(mutex);
  uint64_t generation() const SILTFS_REQUIRES(mutex) { return generation_; }

  // Writes as much of `data` as fits on the disk; kNoSpace unless all of it fits.
  Status WriteWhatFits(SimNode& node, uint64_t offset, ByteView data) SILTFS_REQUIRES(mutex);
  // Frees the file's space if it has no name and is not open.
  void ReleaseIfGone(const SimNode& node) SILTFS_REQUIRES(mutex);

  void Reboot(const CrashPolicy& policy) SILTFS_REQUIRES(mutex);

  // Numbers a new node and enters it into the tree; ends the call.
  Status AddName(std::string_view path, SimNodePtr node) SILTFS_REQUIRES(mutex);
  // Applies a recorded change.
  Status Replay(const SimRecord& record) SILTFS_REQUIRES(mutex);
  // Appends an applied change to the trace, if one is recorded.
  void Record(SimRecord record) SILTFS_REQUIRES(mutex) {
    if (trace) trace->push_back(std::move(record));
  }
  void Record(SimRecord::Kind kind, const SimNode& node, uint64_t offset = 0, ByteView data = {})
      SILTFS_REQUIRES(mutex) {
    if (trace) trace->push_back({kind, node.id, offset, {}, {}, Bytes(data.begin(), data.end())});
  }
  void Record(SimRecord::Kind kind, std::string_view path, std::string_view to = {})
      SILTFS_REQUIRES(mutex) {
    if (trace) trace->push_back({kind, 0, 0, std::string(path), std::string(to), {}});
  }
  // Copies the names, contents and numbers of another device. No file of the copy is open.
  void CopyFrom(const SimDisk& other) SILTFS_REQUIRES(mutex, other.mutex);

  mutable Mutex mutex;
  SimNames names SILTFS_GUARDED_BY(mutex);
  std::vector<SimFault> faults SILTFS_GUARDED_BY(mutex);
  uint64_t calls_until_cut SILTFS_GUARDED_BY(mutex) = 0;  // 0: no cut is armed
  bool power_is_on SILTFS_GUARDED_BY(mutex) = true;
  std::array<uint64_t, 32> counters SILTFS_GUARDED_BY(mutex) = {};  // indexed by the bit of SimCall
  uint64_t capacity_pages SILTFS_GUARDED_BY(mutex) = SimEnv::kUnlimited / SimImage::kPageSize;
  uint64_t used_pages SILTFS_GUARDED_BY(mutex) = 0;
  int64_t clock SILTFS_GUARDED_BY(mutex) = 1'700'000'000'000'000'000;
  int64_t monotonic_clock SILTFS_GUARDED_BY(mutex) = 0;
  Random random SILTFS_GUARDED_BY(mutex);
  std::optional<SimTrace> trace SILTFS_GUARDED_BY(mutex);  // present while a trace is recorded

 private:
  Status ReplayOnFile(const SimRecord& record) SILTFS_REQUIRES(mutex);

  uint64_t generation_ SILTFS_GUARDED_BY(mutex) = 0;  // number of power cuts
  bool cutting_ SILTFS_GUARDED_BY(mutex) = false;
  uint64_t next_node_ SILTFS_GUARDED_BY(mutex) = 1;
  uint64_t bytes_of_failed_write_ SILTFS_GUARDED_BY(mutex) = 0;
};

}  // namespace siltfs
