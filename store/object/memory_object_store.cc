#include "store/object/memory_object_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/base/checksum.h"
#include "store/object/object_key.h"

namespace siltfs {
namespace {

constexpr size_t kMostListed = 1000;
constexpr size_t kPieceBytes = size_t{64} << 10;

Result<std::string> ReadPieces(const ReadableFile& file) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::string content(size, '\0');
  const MutableByteView all{reinterpret_cast<uint8_t*>(content.data()), content.size()};
  for (uint64_t offset = 0; offset < size;) {
    const MutableByteView piece =
        all.subspan(offset, std::min<uint64_t>(kPieceBytes, size - offset));
    SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(offset, piece));
    if (got != piece.size())
      return Status(StatusCode::kCorruption, "the file has become shorter").At(file.path(), offset);
    offset += got;
  }
  return content;
}

}  // namespace

MemoryObjectStore::MemoryObjectStore(MemoryObjectOptions options)
    : options_(std::move(options)), capacity_(options_.capacity_bytes) {}

Status MemoryObjectStore::NotFound(const std::string& key) {
  return Status(StatusCode::kNotFound, "there is no such object").At(key);
}

Status MemoryObjectStore::Begin(ObjectCall call, const std::string& key, uint64_t bytes) const {
  if (call != ObjectCall::kList && !IsObjectKey(key))
    return Status(StatusCode::kInvalidArgument, "this is no key of an object").At(key);
  if (options_.wait) {
    const auto transfer = std::chrono::nanoseconds(
        static_cast<int64_t>(options_.nanoseconds_per_byte * static_cast<double>(bytes)));
    options_.wait(call, key, options_.latency + transfer);
  }
  if (interrupted_) return Status(StatusCode::kInterrupted, "the store is being closed").At(key);
  return Status::Ok();
}

std::optional<ObjectFault> MemoryObjectStore::FaultOf(ObjectCall call, const std::string& key) {
  ++calls_[static_cast<size_t>(call)];
  std::optional<ObjectFault> hit;
  for (auto fault = faults_.begin(); fault != faults_.end();) {
    const bool matches = fault->call == call && key.find(fault->key_part) != std::string::npos;
    if (!matches || (fault->nth > 1 && fault->nth--)) {
      ++fault;
      continue;
    }
    if (!hit) hit = *fault;
    fault = fault->permanent ? fault + 1 : faults_.erase(fault);
  }
  return hit;
}

Status MemoryObjectStore::FailureOf(const ObjectFault& fault, const std::string& key) {
  ++failures_;
  return Status(fault.code, "injected failure").At(key);
}

Status MemoryObjectStore::Admit(const std::string& key, uint64_t size,
                                const PutCondition& condition) {
  const auto found = objects_.find(key);
  const bool there = found != objects_.end();
  if (condition.kind == PutCondition::Kind::kIfAbsent && there)
    return Status(StatusCode::kAlreadyExists, "the object exists").At(key);
  if (condition.kind == PutCondition::Kind::kIfVersion &&
      (!there || found->second.version != condition.version)) {
    return Status(StatusCode::kStale, "the object has another version, or is gone").At(key);
  }
  const uint64_t others = used_ - (there ? found->second.content->size() : 0);
  if (size > capacity_ || others > capacity_ - size) {
    ++failures_;
    return Status(StatusCode::kNoSpace, fmt::format("no room for {} bytes", size)).At(key);
  }
  return Status::Ok();
}

Result<std::string> MemoryObjectStore::PutFile(const std::string& key, const ReadableFile& content,
                                               const PutCondition& condition) {
  SILTFS_ASSIGN_OR_RETURN(const std::string bytes, ReadPieces(content));
  return Put(key, AsBytes(bytes), condition);
}

Result<std::string> MemoryObjectStore::Put(const std::string& key, ByteView content,
                                           const PutCondition& condition) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kPut, key, content.size()));
  MutexLock lock(mutex_);
  const auto fault = FaultOf(ObjectCall::kPut, key);
  if (fault && fault->effect != ObjectFault::Effect::kAnswerLost) return FailureOf(*fault, key);
  SILTFS_RETURN_IF_ERROR(Admit(key, content.size(), condition));
  Object& object = objects_[key];
  used_ += content.size() - (object.content ? object.content->size() : 0);
  sent_ += content.size();
  object.content = std::make_shared<const std::string>(AsText(content));
  object.version = fmt::format("{:016x}", Checksum(content));
  if (fault) return FailureOf(*fault, key);
  return object.version;
}

Result<Bytes> MemoryObjectStore::Get(const std::string& key, uint64_t limit, std::string* version) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kGet, key, 0));
  MutexLock lock(mutex_);
  if (const auto fault = FaultOf(ObjectCall::kGet, key)) {
    if (fault->effect == ObjectFault::Effect::kNone) return FailureOf(*fault, key);
    ++failures_;
    return Status(StatusCode::kCorruption, "the object does not have its checksum").At(key);
  }
  const auto found = objects_.find(key);
  if (found == objects_.end()) return NotFound(key);
  const std::string& content = *found->second.content;
  if (content.size() > limit) {
    return Status(StatusCode::kFileTooLarge,
                  fmt::format("the object has {} bytes, the limit is {}", content.size(), limit))
        .At(key);
  }
  if (version != nullptr) *version = found->second.version;
  received_ += content.size();
  const ByteView bytes = AsBytes(content);
  return Bytes(bytes.begin(), bytes.end());
}

Result<size_t> MemoryObjectStore::Read(const std::string& key, std::string_view version,
                                       uint64_t offset, MutableByteView out) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kGet, key, out.size()));
  if (reads_interrupted_)
    return Status(StatusCode::kInterrupted, "reads of the bucket have ended").At(key);
  MutexLock lock(mutex_);
  const auto fault = FaultOf(ObjectCall::kGet, key);
  if (fault && fault->effect == ObjectFault::Effect::kNone) return FailureOf(*fault, key);
  const auto found = objects_.find(key);
  const bool there = found != objects_.end();
  if (!version.empty() && (!there || version != found->second.version)) {
    return Status(StatusCode::kStale, "the object has another version, or is gone").At(key, offset);
  }
  if (!there) return NotFound(key);
  const std::string& content = *found->second.content;
  if (offset >= content.size()) return size_t{0};
  size_t size = std::min<uint64_t>(out.size(), content.size() - offset);
  if (fault && fault->effect == ObjectFault::Effect::kTruncated) size /= 2;
  if (size > 0) std::memcpy(out.data(), content.data() + offset, size);
  if (size > 0 && fault && fault->effect == ObjectFault::Effect::kWrongBody) out[size / 2] ^= 0x40;
  received_ += size;
  return size;
}

Result<ObjectInfo> MemoryObjectStore::Stat(const std::string& key) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kStat, key, 0));
  MutexLock lock(mutex_);
  if (const auto fault = FaultOf(ObjectCall::kStat, key)) return FailureOf(*fault, key);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return NotFound(key);
  return ObjectInfo{key, found->second.content->size(), found->second.version};
}

Status MemoryObjectStore::Remove(const std::string& key) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kRemove, key, 0));
  MutexLock lock(mutex_);
  const auto fault = FaultOf(ObjectCall::kRemove, key);
  if (fault && fault->effect != ObjectFault::Effect::kAnswerLost) return FailureOf(*fault, key);
  if (const auto found = objects_.find(key); found != objects_.end()) {
    used_ -= found->second.content->size();
    objects_.erase(found);
  }
  return fault ? FailureOf(*fault, key) : Status::Ok();
}

Result<ObjectPage> MemoryObjectStore::List(const std::string& prefix, const std::string& after,
                                           size_t limit) {
  SILTFS_RETURN_IF_ERROR(Begin(ObjectCall::kList, prefix, 0));
  MutexLock lock(mutex_);
  if (const auto fault = FaultOf(ObjectCall::kList, prefix)) return FailureOf(*fault, prefix);
  ObjectPage page;
  auto at = after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
  for (; at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (page.objects.size() == std::min(limit, kMostListed)) {
      page.more = true;
      break;
    }
    page.objects.push_back({at->first, at->second.content->size(), at->second.version});
  }
  return page;
}

ObjectStoreCounters MemoryObjectStore::Counters() const {
  MutexLock lock(mutex_);
  const auto calls = [this](ObjectCall call)
                         SILTFS_REQUIRES(mutex_) { return calls_[static_cast<size_t>(call)]; };
  return {.puts = calls(ObjectCall::kPut),
          .gets = calls(ObjectCall::kGet),
          .stats = calls(ObjectCall::kStat),
          .lists = calls(ObjectCall::kList),
          .removes = calls(ObjectCall::kRemove),
          .retries = 0,
          .failures = failures_,
          .sent_bytes = sent_,
          .received_bytes = received_};
}

void MemoryObjectStore::FailCall(const ObjectFault& fault) {
  MutexLock lock(mutex_);
  faults_.push_back(fault);
}

void MemoryObjectStore::ClearFaults() {
  MutexLock lock(mutex_);
  faults_.clear();
}

uint64_t MemoryObjectStore::Calls(ObjectCall call) const {
  MutexLock lock(mutex_);
  return calls_[static_cast<size_t>(call)];
}

void MemoryObjectStore::SetCapacity(uint64_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = bytes;
}

std::vector<std::string> MemoryObjectStore::Keys() const {
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

Result<std::string> MemoryObjectStore::Content(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return NotFound(key);
  return *found->second.content;
}

void MemoryObjectStore::SetContent(const std::string& key, std::string content) {
  MutexLock lock(mutex_);
  Object& object = objects_[key];
  used_ += content.size() - (object.content ? object.content->size() : 0);
  object.content = std::make_shared<const std::string>(std::move(content));
}

std::unique_ptr<MemoryObjectStore> MemoryObjectStore::Fork() const {
  auto fork = std::make_unique<MemoryObjectStore>(options_);
  MutexLock lock(mutex_);
  MutexLock fork_lock(fork->mutex_);
  fork->objects_ = objects_;
  fork->used_ = used_;
  fork->capacity_ = capacity_;
  return fork;
}

}  // namespace siltfs
