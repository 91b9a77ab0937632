#include "index/flash/state_map.h"

#include <fmt/format.h>

#include "index/flash/store_files.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kBaseName = "manifest";
constexpr std::string_view kMagic = "SILTPGS\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumSize = 8;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr uint32_t kRemoved = UINT32_MAX;  // instead of a record's size
constexpr uint64_t kNodeBytes = 80;        // of a record in memory, beside its bytes

void EncodeRecord(Encoder& out, uint64_t number, std::string_view record) {
  out.U64(number).U32(static_cast<uint32_t>(record.size())).Raw(record);
}

Status Damaged(const char* what) { return {StatusCode::kCorruption, what}; }

std::string EncodeEdit(const StateMap::Changes& changes) {
  Encoder out;
  for (const auto& [number, record] : changes) {
    if (record) {
      EncodeRecord(out, number, *record);
    } else {
      out.U64(number).U32(kRemoved);
    }
  }
  return out.Take();
}

Result<StateMap::Changes> DecodeEdit(ByteView bytes) {
  StateMap::Changes changes;
  Decoder in(bytes);
  while (in.ok() && in.remaining() > 0) {
    const uint64_t number = in.U64();
    const uint32_t size = in.U32();
    std::optional<std::string> record;
    if (size != kRemoved) record = AsText(in.Raw(size));
    changes.emplace_back(number, std::move(record));
  }
  if (!in.Done()) return Damaged("has an invalid edit");
  return changes;
}

}  // namespace

std::string StateMap::BasePath() const { return JoinPath(directory_, kBaseName); }

void StateMap::Set(Records& records, uint64_t number, std::optional<std::string> record) {
  const auto old = records.find(number);
  if (old != records.end()) {
    memory_bytes_ -= old->second.size() + kNodeBytes;
    if (!record) records.erase(old);
  }
  if (!record) return;
  memory_bytes_ += record->size() + kNodeBytes;
  records[number] = std::move(*record);
}

Status StateMap::ReadBase(ByteView bytes, uint64_t& generation) {
  if (bytes.size() < kMagic.size() + kChecksumSize) return Damaged("is too short for a manifest");
  const ByteView checked = bytes.first(bytes.size() - kChecksumSize);
  if (Decoder(bytes.last(kChecksumSize)).U64() != Checksum(checked)) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(checked);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is no manifest of page files");
  const uint32_t version = in.U32();
  if (in.ok() && version > kVersion) {
    return {StatusCode::kNeedsNewer, fmt::format("is an index of version {}", version)};
  }
  generation = in.U64();
  const uint64_t count = in.U64();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t number = in.U64();
    const ByteView record = in.Raw(in.U32());
    if (in.ok()) Set(records_, number, std::string(AsText(record)));
  }
  if (!in.Done() || generation == 0 || records_.size() != count)
    return Damaged("has wrong records");
  return Status::Ok();
}

Result<bool> StateMap::Read() {
  auto base = ReadWholeFile(env_, BasePath(), kMostBytes);
  if (!base.ok()) {
    if (base.status().Is(StatusCode::kNotFound)) return false;
    if (base.status().Is(StatusCode::kFileTooLarge)) {
      return Damaged("is too large for a manifest").At(BasePath());
    }
    return std::move(base).status();
  }
  uint64_t generation = 0;
  Status read = ReadBase(AsBytes(*base), generation);
  if (!read.ok()) return std::move(read).At(BasePath());
  SILTFS_RETURN_IF_ERROR(edits_.Read(generation, base->size(), [this](ByteView edit) -> Status {
    SILTFS_ASSIGN_OR_RETURN(Changes changes, DecodeEdit(edit));
    for (auto& [number, record] : changes) Set(records_, number, std::move(record));
    return Status::Ok();
  }));
  return true;
}

Result<uint64_t> StateMap::WriteBase(const Records& records, uint64_t generation) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U64(generation).U64(records.size());
  for (const auto& [number, record] : records) EncodeRecord(out, number, record);
  out.U64(Checksum(out.view()));
  // The names of the listed files must be durable before the manifest is.
  SILTFS_RETURN_IF_ERROR(SyncNames(env_, directory_));
  SILTFS_RETURN_IF_ERROR(ReplaceFile(env_, BasePath(), out.view()));
  return out.size();
}

Status StateMap::FinishRead() {
  return edits_.FinishRead([this](uint64_t generation) { return WriteBase(records_, generation); });
}

Status StateMap::Commit(const Changes& changes) {
  const auto write_base = [&](uint64_t generation) {
    Records next = records_;
    for (const auto& [number, record] : changes) {
      if (record) {
        next[number] = *record;
      } else {
        next.erase(number);
      }
    }
    return WriteBase(next, generation);
  };
  // The first base makes the file of edits, too.
  if (edits_.generation() == 0) {
    SILTFS_RETURN_IF_ERROR(edits_.Replace(write_base));
  } else {
    SILTFS_RETURN_IF_ERROR(edits_.Record(EncodeEdit(changes), write_base));
  }
  for (const auto& [number, record] : changes) Set(records_, number, record);
  return Status::Ok();
}

Status StateMap::Fold() {
  if (!edits_.WantsFold()) return Status::Ok();
  return edits_.Replace([this](uint64_t generation) { return WriteBase(records_, generation); });
}

}  // namespace siltfs
