#include "fs/shipping/segment_tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/shipping/object_keys.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

constexpr uint64_t kMostTailBytes = 8u << 20;
constexpr size_t kTailChecksumBytes = 8;

// Reads `digits` lower-case hex digits from the front.
std::optional<uint64_t> TakeHex(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  uint64_t value = 0;
  const char* const end = text.data() + digits;
  const auto [last, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || last != end) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

uint64_t TailChecksum(const TailName& name, ByteView bytes) {
  const std::string key = TailKey(name);
  return Checksum(bytes, Checksum(AsBytes(key)));
}

}  // namespace

std::string TailPrefix(uint32_t epoch) { return fmt::format("{}{:08x}/", kTailPrefix, epoch); }

std::string TailKey(const TailName& name) {
  return fmt::format("{}{:08x}/{:016x}", TailPrefix(name.epoch), name.segment, name.offset);
}

std::optional<TailName> ParseTailKey(std::string_view key) {
  const std::string_view whole = key;
  if (!key.starts_with(kTailPrefix)) return std::nullopt;
  key.remove_prefix(kTailPrefix.size());
  const auto epoch = TakeHex(key, 8);
  if (!epoch || !key.starts_with("/")) return std::nullopt;
  key.remove_prefix(1);
  const auto segment = TakeHex(key, 8);
  if (!segment || !key.starts_with("/")) return std::nullopt;
  key.remove_prefix(1);
  const auto offset = TakeHex(key, 16);
  if (!offset) return std::nullopt;
  const TailName name{static_cast<uint32_t>(*epoch), static_cast<SegmentId>(*segment), *offset};
  if (TailKey(name) != whole) return std::nullopt;
  return name;
}

std::string EncodeTail(const TailName& name, ByteView bytes) {
  Encoder out;
  out.Raw(bytes).U64(TailChecksum(name, bytes));
  return out.Take();
}

Result<std::string> DecodeTail(const TailName& name, ByteView object) {
  const bool has_sum = object.size() >= kTailChecksumBytes;
  const ByteView bytes = object.first(has_sum ? object.size() - kTailChecksumBytes : 0);
  if (!has_sum || Decoder(object.last(kTailChecksumBytes)).U64() != TailChecksum(name, bytes)) {
    return Status(StatusCode::kCorruption, "the bytes of the segment are damaged")
        .At(TailKey(name));
  }
  return std::string(AsText(bytes));
}

SegmentTails::SegmentTails(Env& env, std::string store, ObjectStore& objects, Uploads uploads)
    : env_(env), store_(std::move(store)), objects_(objects), uploads_(std::move(uploads)) {}

Status SegmentTails::Load(const KvStore& kv) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing files, ListSegments(env_, store_));
  MutexLock lock(mutex_);
  for (const SegmentId id : files.ids) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, kv.Get(SegmentKey(id)));
    if (!value) continue;
    SILTFS_ASSIGN_OR_RETURN(const SegmentRecord record, SegmentRecord::Decode(*value));
    local_[id].committed = record.length;
  }
  return Status::Ok();
}

void SegmentTails::Committed(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (!IsKeyOf(Table::kSegment, mutation.key)) continue;
    const auto id = ParseSegmentKey(mutation.key);
    if (!id || !mutation.value) continue;  // Upload finds out that a file is gone
    const auto record = SegmentRecord::Decode(*mutation.value);
    if (!record.ok()) continue;  // metadata is damaged; fsck reports it
    MutexLock lock(mutex_);
    local_[*id].committed = record->length;
  }
}

Result<bool> SegmentTails::PutTail(uint32_t epoch, SegmentId id, Local& local) {
  const std::string path = SegmentPath(store_, id);
  if (local.put >= local.committed) {
    const auto info = env_.GetFileInfo(path);
    if (info.status().Is(StatusCode::kNotFound)) return false;
    SILTFS_RETURN_IF_ERROR(info.status());
    return true;
  }
  const auto file = env_.OpenFile(path, {.mode = OpenMode::kRead});
  if (file.status().Is(StatusCode::kNotFound)) return false;
  SILTFS_RETURN_IF_ERROR(file.status());
  while (local.put < local.committed) {
    // A put that has failed may still arrive, and must not replace a longer tail by a shorter one.
    // So it is repeated with the same bytes.
    const uint64_t end = local.tried > local.put ? local.tried : local.committed;
    Bytes bytes(std::min(end - local.put, kMostTailBytes));
    local.tried = local.put + bytes.size();
    SILTFS_RETURN_IF_ERROR(ReadExactly(**file, local.put, bytes));
    const TailName name{epoch, id, local.put};
    const std::string object = EncodeTail(name, bytes);
    SILTFS_RETURN_IF_ERROR(
        objects_.Put(TailKey(name), AsBytes(object), PutCondition::Always()).status());
    local.put += bytes.size();
  }
  return true;
}

// The files are looked at first, and the uploads are awaited then: a segment that is not a file any
// more was put before.
Status SegmentTails::Upload(uint32_t epoch) {
  epoch_ = epoch;
  std::map<SegmentId, Local> local;
  {
    MutexLock lock(mutex_);
    local = local_;
  }
  Status failure;
  for (auto& [id, state] : local) {
    const auto there = PutTail(epoch, id, state);
    if (!there.ok() && failure.ok()) failure = there.status();
    MutexLock lock(mutex_);
    const auto found = local_.find(id);
    found->second.put = state.put;
    found->second.tried = state.tried;
    // If it was committed again meanwhile, the next call looks at it again.
    if (!there.ok() || *there || found->second.committed != state.committed) continue;
    local_.erase(found);
    put_.insert(id);
  }
  SILTFS_RETURN_IF_ERROR(failure);
  return AwaitUploads();
}

// A Put renames the file first, and hands it to the upload threads a moment later.
Status SegmentTails::AwaitUploads() {
  constexpr int kMostLooks = 1000;
  constexpr std::chrono::milliseconds kBetween(10);
  for (int look = 0; look < kMostLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    SILTFS_RETURN_IF_ERROR(uploads_.wait());
    std::erase_if(put_, [this](SegmentId id) {
      if (!uploads_.has(id)) return false;
      gone_.push_back(id);
      return true;
    });
    if (put_.empty()) return Status::Ok();
  }
  return Status(StatusCode::kIoError,
                fmt::format("segment {} was put and is not uploaded", *put_.begin()))
      .At(store_);
}

Status SegmentTails::RemoveBelow(const std::string& prefix, const std::string& end) {
  return ForEachObject(objects_, prefix, [&](const ObjectInfo& info) {
    return end.empty() || info.key < end ? objects_.Remove(info.key) : Status::Ok();
  });
}

void SegmentTails::Shipped(uint64_t /*sequence*/) {
  if (!removed_older_)
    removed_older_ = RemoveBelow(std::string(kTailPrefix), TailPrefix(epoch_)).ok();
  std::erase_if(gone_, [this](SegmentId id) {
    return RemoveBelow(fmt::format("{}{:08x}/", TailPrefix(epoch_), id), "").ok();
  });
}

}  // namespace siltfs
