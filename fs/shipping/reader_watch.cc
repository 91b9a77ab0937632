#include "fs/shipping/reader_watch.h"

#include <algorithm>

#include "fs/shipping/object_keys.h"

namespace siltfs {
namespace {

// More objects than that are no readers, but a sign of a fault. Nothing is deleted then.
constexpr size_t kMostReaders = 10'000;

}  // namespace

Status ReaderWatch::Read(const std::string& key, Known& known) {
  known.reader = {};
  const auto bytes = objects_.Get(key, kMostReaderBytes, nullptr);
  const Status& got = bytes.status();
  const bool unusable = got.Is(StatusCode::kNotFound) || got.Is(StatusCode::kCorruption) ||
                        got.Is(StatusCode::kFileTooLarge);
  if (!bytes.ok() && !unusable) return bytes.status();
  if (!bytes.ok()) return Status::Ok();
  auto reader = DecodeReader(*bytes);
  if (reader.ok()) known.reader = std::move(reader).value();
  reader.status().IgnoreError("it counts as a reader that needs everything");
  return Status::Ok();
}

Status ReaderWatch::Note(const ObjectInfo& info, int64_t now_ns) {
  if (known_.size() > kMostReaders) {
    return Status(StatusCode::kCorruption, "there are too many objects of readers")
        .At(std::string(kReaderPrefix));
  }
  const auto [found, added] = known_.try_emplace(info.key);
  Known& known = found->second;
  known.listed = true;
  if (!added && known.version == info.version) return Status::Ok();
  known.version.clear();
  SILTFS_RETURN_IF_ERROR(Read(info.key, known));
  known.version = info.version;
  known.since_ns = now_ns;
  return Status::Ok();
}

Result<ReaderView> ReaderWatch::Look(int64_t now_ns) {
  // The last look found too many, and removed none. Without this, all further looks would fail,
  // too. The ages of the readers begin again.
  if (known_.size() > kMostReaders) known_.clear();
  for (auto& [key, known] : known_) known.listed = false;
  SILTFS_RETURN_IF_ERROR(ForEachObject(objects_, std::string(kReaderPrefix),
                                       [&](const ObjectInfo& info) { return Note(info, now_ns); }));
  ReaderView view;
  for (auto known = known_.begin(); known != known_.end();) {
    const bool silent = now_ns - known->second.since_ns > known->second.reader.age.count();
    if (known->second.listed && silent) SILTFS_RETURN_IF_ERROR(objects_.Remove(known->first));
    if (!known->second.listed || silent) {
      known = known_.erase(known);
      continue;
    }
    ++view.readers;
    view.reached = std::min(view.reached, known->second.reader.reached);
    ++known;
  }
  return view;
}

}  // namespace siltfs
