#include "store/segment/memory_segment_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/base/bytes.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

struct Object {
  std::string content;
};

std::string FileName(SegmentId id) {
  const std::string path = SegmentPath("", id);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

struct MemorySegmentStore::Shared {
  explicit Shared(MemorySegmentOptions options_in)
      : options(std::move(options_in)), capacity(options.capacity_bytes) {}

  std::string NameOf(SegmentId id) const { return options.name + "/" + FileName(id); }

  void Wait(SegmentCall call, const std::string& segment, uint64_t bytes) const {
    if (!options.wait) return;
    const auto transfer = std::chrono::nanoseconds(
        static_cast<int64_t>(options.nanoseconds_per_byte * static_cast<double>(bytes)));
    options.wait(call, segment, options.latency + transfer);
  }

  // Counts the call; returns the fault that hits it, if any.
  std::optional<SegmentFault> CountCall(SegmentCall call) SILTFS_REQUIRES(mutex) {
    ++calls[static_cast<size_t>(call)];
    std::optional<SegmentFault> hit;
    for (auto fault = faults.begin(); fault != faults.end();) {
      if (fault->call != call || (fault->nth > 1 && fault->nth--)) {
        ++fault;
        continue;
      }
      if (!hit) hit = *fault;
      fault = fault->permanent ? fault + 1 : faults.erase(fault);
    }
    return hit;
  }

  static Status Failure(const SegmentFault& fault) {
    return Status(fault.code, "injected failure");
  }
  static Status Failure(const SegmentFault& fault, const std::string& segment) {
    return Failure(fault).At(segment);
  }
  Status NotFound(SegmentId id) const {
    return Status(StatusCode::kNotFound, "there is no such segment").At(NameOf(id));
  }

  const MemorySegmentOptions options;
  mutable Mutex mutex;
  std::map<SegmentId, std::shared_ptr<Object>> objects SILTFS_GUARDED_BY(mutex);
  std::vector<SegmentFault> faults SILTFS_GUARDED_BY(mutex);
  std::array<uint64_t, kSegmentCalls> calls SILTFS_GUARDED_BY(mutex) = {};
  uint64_t capacity SILTFS_GUARDED_BY(mutex);
};

class MemorySegmentStore::Reader final : public ReadableFile {
 public:
  Reader(std::shared_ptr<Shared> shared, std::shared_ptr<const Object> object, SegmentId id)
      : shared_(std::move(shared)), object_(std::move(object)), path_(shared_->NameOf(id)) {}

  const std::string& path() const override { return path_; }

  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    shared_->Wait(SegmentCall::kRead, path_, out.size());
    MutexLock lock(shared_->mutex);
    if (const auto fault = shared_->CountCall(SegmentCall::kRead))
      return Shared::Failure(*fault).At(path_, offset);
    const std::string& content = object_->content;
    if (offset >= content.size()) return size_t{0};
    const size_t size = std::min<uint64_t>(out.size(), content.size() - offset);
    if (size > 0) std::memcpy(out.data(), content.data() + offset, size);
    return size;
  }

  Result<uint64_t> Size() const override {
    MutexLock lock(shared_->mutex);
    return uint64_t{object_->content.size()};
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<const Object> object_;  // its content is guarded by the store's mutex
  const std::string path_;
};

MemorySegmentStore::MemorySegmentStore(MemorySegmentOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))) {}

MemorySegmentStore::~MemorySegmentStore() = default;

const std::string& MemorySegmentStore::name() const { return shared_->options.name; }

std::string MemorySegmentStore::NameOf(SegmentId id) const { return shared_->NameOf(id); }

std::optional<SegmentId> MemorySegmentStore::IdOf(std::string_view name) const {
  return ParseSegmentFileName(name.substr(name.rfind('/') + 1));
}

Result<std::unique_ptr<const ReadableFile>> MemorySegmentStore::Open(SegmentId id) {
  shared_->Wait(SegmentCall::kOpen, NameOf(id), 0);
  MutexLock lock(shared_->mutex);
  if (const auto fault = shared_->CountCall(SegmentCall::kOpen))
    return Shared::Failure(*fault, NameOf(id));
  const auto found = shared_->objects.find(id);
  if (found == shared_->objects.end()) return shared_->NotFound(id);
  return std::unique_ptr<const ReadableFile>(std::make_unique<Reader>(shared_, found->second, id));
}

Status MemorySegmentStore::Store(SegmentCall call, SegmentId id, const SegmentSource& source,
                                 bool must_match) {
  SILTFS_ASSIGN_OR_RETURN(std::string content, source.Read());
  shared_->Wait(call, NameOf(id), content.size());
  {
    MutexLock lock(shared_->mutex);
    const auto fault = shared_->CountCall(call);
    if (fault && !fault->answer_lost) return Shared::Failure(*fault, NameOf(id));
    uint64_t used = 0;
    for (const auto& [other, object] : shared_->objects) {
      if (other != id) used += object->content.size();
    }
    const auto held = shared_->objects.find(id);
    const bool there = held != shared_->objects.end();
    if (there && must_match && held->second->content != content) {
      return Status(StatusCode::kAlreadyExists, "the segment exists, with another content")
          .At(NameOf(id));
    }
    if (content.size() > shared_->capacity || used > shared_->capacity - content.size()) {
      return Status(StatusCode::kNoSpace, fmt::format("no room for {} bytes", content.size()))
          .At(NameOf(id));
    }
    if (!there || !must_match)
      shared_->objects[id] = std::make_shared<Object>(Object{std::move(content)});
    if (fault) return Shared::Failure(*fault, NameOf(id));
  }
  return source.Remove();
}

Status MemorySegmentStore::Put(SegmentId id, const SegmentSource& source) {
  return Store(SegmentCall::kPut, id, source, /*must_match=*/true);
}

Status MemorySegmentStore::Replace(SegmentId id, const SegmentSource& source) {
  return Store(SegmentCall::kReplace, id, source, /*must_match=*/false);
}

Status MemorySegmentStore::Remove(SegmentId id) {
  shared_->Wait(SegmentCall::kRemove, NameOf(id), 0);
  MutexLock lock(shared_->mutex);
  const auto fault = shared_->CountCall(SegmentCall::kRemove);
  if (fault && !fault->answer_lost) return Shared::Failure(*fault, NameOf(id));
  shared_->objects.erase(id);
  return fault ? Shared::Failure(*fault, NameOf(id)) : Status::Ok();
}

Result<SegmentListing> MemorySegmentStore::List() {
  shared_->Wait(SegmentCall::kList, name(), 0);
  MutexLock lock(shared_->mutex);
  if (const auto fault = shared_->CountCall(SegmentCall::kList))
    return Shared::Failure(*fault, name());
  SegmentListing listing;
  for (const auto& [id, object] : shared_->objects) listing.ids.push_back(id);
  if (!listing.ids.empty()) listing.directories.push_back(name());
  return listing;
}

Result<SegmentListing> MemorySegmentStore::Recover() { return List(); }

void MemorySegmentStore::FailCall(const SegmentFault& fault) {
  MutexLock lock(shared_->mutex);
  shared_->faults.push_back(fault);
}

void MemorySegmentStore::ClearFaults() {
  MutexLock lock(shared_->mutex);
  shared_->faults.clear();
}

uint64_t MemorySegmentStore::Calls(SegmentCall call) const {
  MutexLock lock(shared_->mutex);
  return shared_->calls[static_cast<size_t>(call)];
}

void MemorySegmentStore::SetCapacity(uint64_t bytes) {
  MutexLock lock(shared_->mutex);
  shared_->capacity = bytes;
}

Result<std::string> MemorySegmentStore::Content(SegmentId id) const {
  MutexLock lock(shared_->mutex);
  const auto found = shared_->objects.find(id);
  if (found == shared_->objects.end()) return shared_->NotFound(id);
  return found->second->content;
}

void MemorySegmentStore::SetContent(SegmentId id, std::string content) {
  MutexLock lock(shared_->mutex);
  std::shared_ptr<Object>& object = shared_->objects[id];
  if (!object) object = std::make_shared<Object>();
  object->content = std::move(content);
}

Status MemorySegmentStore::Corrupt(SegmentId id, uint64_t offset, uint64_t length, uint8_t mask) {
  MutexLock lock(shared_->mutex);
  const auto found = shared_->objects.find(id);
  if (found == shared_->objects.end()) return shared_->NotFound(id);
  std::string& content = found->second->content;
  if (offset > content.size() || length > content.size() - offset) {
    return Status(StatusCode::kInvalidArgument, "the range is not in the segment")
        .At(NameOf(id), offset);
  }
  for (uint64_t i = offset; i < offset + length; ++i)
    content[i] = static_cast<char>(content[i] ^ mask);
  return Status::Ok();
}

std::unique_ptr<MemorySegmentStore> MemorySegmentStore::Fork() const {
  MutexLock lock(shared_->mutex);
  auto fork = std::make_unique<MemorySegmentStore>(shared_->options);
  MutexLock fork_lock(fork->shared_->mutex);
  fork->shared_->capacity = shared_->capacity;
  for (const auto& [id, object] : shared_->objects)
    fork->shared_->objects[id] = std::make_shared<Object>(*object);
  return fork;
}

}  // namespace siltfs
