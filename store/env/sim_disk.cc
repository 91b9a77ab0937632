#include "store/env/sim_disk.h"

#include <algorithm>
#include <bit>
#include <string>

namespace siltfs {

Status SimDisk::CheckPower(uint64_t generation) const {
  if (!power_is_on) return Status(StatusCode::kIoError, "the power is off");
  if (generation != generation_) {
    return Status(StatusCode::kIoError, "was open when the power was cut");
  }
  return Status::Ok();
}

Status SimDisk::Begin(SimCall call, std::string_view path, uint64_t generation) {
  bytes_of_failed_write_ = 0;
  SILTFS_RETURN_IF_ERROR(CheckPower(generation));
  ++counters[static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(call)))];

  const SimFault* striking = nullptr;
  for (SimFault& fault : faults) {
    if (!Includes(fault.calls, call) || path.find(fault.path_part) == path.npos) continue;
    if (fault.nth > 0) --fault.nth;  // all armed faults count the call
    if (fault.nth == 0 && striking == nullptr) striking = &fault;
  }
  Status verdict;
  if (striking != nullptr) {
    verdict = Status(striking->code, "a fault was injected");
    bytes_of_failed_write_ = striking->bytes_written;
  }
  std::erase_if(faults, [](const SimFault& fault) { return fault.nth == 0 && !fault.sticky; });

  if (Includes(SimCall::kMutating, call) && calls_until_cut > 0 && --calls_until_cut == 0) {
    cutting_ = true;
    if (!verdict.ok()) return End(std::move(verdict));
  }
  return verdict;
}

Status SimDisk::End(Status outcome) {
  if (!cutting_) return outcome;
  cutting_ = false;
  power_is_on = false;
  outcome.IgnoreError("the power was cut during the call, its outcome is never reported");
  return Status(StatusCode::kIoError, "the power was cut");
}

Status SimDisk::WriteWhatFits(SimNode& node, uint64_t offset, ByteView data) {
  uint64_t fits = 0;
  uint64_t new_pages = 0;
  while (fits < data.size()) {
    const uint64_t at = offset + fits;
    if (node.content.NeedsPage(at / SimImage::kPageSize)) {
      if (used_pages + new_pages >= capacity_pages) break;
      ++new_pages;
    }
    fits = std::min<uint64_t>(data.size(), fits + SimImage::kPageSize - at % SimImage::kPageSize);
  }
  node.content.Write(offset, data.first(fits));
  Record(SimRecord::Kind::kWrite, node, offset, data.first(fits));
  used_pages += new_pages;
  if (fits == data.size()) return Status::Ok();
  return Status(StatusCode::kNoSpace, "no space left on the device");
}

void SimDisk::ReleaseIfGone(const SimNode& node) {
  if (!node.named && node.open_files == 0) used_pages -= node.content.ChargedPages();
}

Status SimDisk::AddName(std::string_view path, SimNodePtr node) {
  const bool directory = node->type == FileType::kDirectory;
  node->id = next_node_;
  Status added = names.Add(path, std::move(node));
  if (added.ok()) {
    ++next_node_;
    Record(directory ? SimRecord::Kind::kCreateDirectory : SimRecord::Kind::kCreateFile, path);
  }
  return End(std::move(added));
}

Status SimDisk::Replay(const SimRecord& record) {
  using Kind = SimRecord::Kind;
  switch (record.kind) {
    case Kind::kMark:
      return Status::Ok();
    case Kind::kCreateFile:
      return AddName(record.path, std::make_shared<SimNode>(FileType::kRegular));
    case Kind::kCreateDirectory:
      return AddName(record.path, std::make_shared<SimNode>(FileType::kDirectory));
    case Kind::kRename:
      return names.Rename(record.path, record.to).status();
    case Kind::kRemoveFile:
      return names.RemoveFile(record.path).status();
    case Kind::kRemoveDirectory:
      return names.RemoveDirectory(record.path);
    case Kind::kSyncDirectory:
      return names.SyncDirectory(record.path, true);
    default:
      return ReplayOnFile(record);
  }
}

Status SimDisk::ReplayOnFile(const SimRecord& record) {
  using Kind = SimRecord::Kind;
  const SimNodePtr node = names.FindFile(record.file);
  if (node == nullptr) return Status::Ok();  // removed; still open on the recorded device
  SimContent& content = node->content;
  switch (record.kind) {
    case Kind::kWrite:
      content.Write(record.offset, record.data);
      return Status::Ok();
    case Kind::kTruncate:
      content.Truncate(record.offset);
      return Status::Ok();
    case Kind::kPreallocate:
      content.Claim(record.offset);
      return Status::Ok();
    case Kind::kSync:
      content.Sync();
      return Status::Ok();
    case Kind::kLoseUnsynced:
      content.LoseUnsynced();
      return Status::Ok();
    default:
      return Status(StatusCode::kCorruption, "a trace holds a record of no known kind");
  }
}

void SimDisk::CopyFrom(const SimDisk& other) {
  names = other.names.Copy();
  used_pages = names.ChargedPages();
  capacity_pages = other.capacity_pages;
  clock = other.clock;
  monotonic_clock = other.monotonic_clock;
  random = other.random;
  next_node_ = other.next_node_;
}

void SimDisk::Reboot(const CrashPolicy& policy) {
  Random fate(policy.seed);
  names.Crash(policy, fate);
  used_pages = names.ChargedPages();
  ++generation_;
  power_is_on = true;
  calls_until_cut = 0;
}

}  // namespace siltfs
